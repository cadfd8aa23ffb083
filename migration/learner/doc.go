// Package learner follows a ZooKeeper ensemble, as an observer that no configuration lists: it connects to the leader
// (or to a follower that serves observers, observerMasterPort), takes over the state or what is missing, and hands each
// committed transaction on, in order and without a gap. Over the same connection it sends what a server with clients
// sends to its leader: writes, syncs, revalidations, and which sessions are alive. It speaks the protocol of ZooKeeper
// 3.4 to 3.9, optionally under TLS and SASL.
//
// It keeps no state but the position in the stream, writes no file and knows no log of ours: the Handler does. It does
// not check digests, because it has no tree; a snapshot that it hands on is one for which they count.
//
// Follow runs its Handler, and one goroutine that reads the connection and answers the leader's pings even while the
// Handler is busy; while it searches for the leader, it also has one for each server that it tries. All have ended when
// Follow returns.
package learner
