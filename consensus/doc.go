// Package consensus makes the servers of an ensemble agree on one log of
// commands, with hashicorp/raft, and applies it to the state machine
// (consensus/state). Together with its subpackages it is the only part of the
// product that touches raft.
//
// It does not know clients or protocols: what it applies it reports to a
// Handler (package server).
//
// # A command's way
//
// Propose gives a command the next number of this server and keeps it until
// its result has been applied here. One ordered stream carries the commands to
// the leader, many at a time (forwarder.go). The leader gathers the streams of
// all servers and hands raft one entry for what has come in (leader.go). Every
// server applies the entry; on the server that proposed it, the result finds
// its Waiter (fsm.go). When the leader dies or the stream breaks, everything
// without a result is sent again to whoever leads next; the state machine
// drops what it has seen. So a client of a surviving server notices nothing,
// and its write happens once.
//
// # Forming an ensemble
//
// A server with an empty data directory does not vote before an ensemble has
// been formed, once, with all its voters present (form.go). A server whose
// disk was wiped, and would forget what it has acknowledged, is refused.
//
// # Concurrency
//
// raft's FSM goroutine is the only writer of the state machine and calls the
// Handler; it never waits for network or disk. One goroutine sends (forwarder),
// one looks for the leader (links), one accepts streams, one serves control connections,
// one watches the disk, one a raft that clings to a dead leader. All start in Open and
// end in Close. While this server leads, one proposes and one has heartbeats sent (beat).
//
// Locks: forwarder.mu, inbox.mu, proposals.mu, Node.mu, Node.sparing. Each is taken alone
// and nothing is called out to under it, except that raft's timeouts are changed under
// the last; the Handler's view lock is held by the FSM goroutine when it takes
// forwarder.mu.
package consensus
