// Package transport is the transport that hashicorp/raft runs on, over the connections of package mux.
//
// It keeps no log and decides no membership. Package consensus alone imports it.
//
// Transport decorates raft.NetworkTransport, which carries votes and snapshots; AppendEntries has
// connections and an encoding of its own (package appendrpc). Four faults of hashicorp/raft
// are fenced in for good: heartbeats take raft's main loop (the fast path changes term and state
// under the main loop's feet and can make replicas diverge), pipelining is refused (it can wedge
// after one failed write, and its answers would bypass AppendEntries), and a snapshot that comes
// late is not installed (stalesnapshot.go), nor one while the server writes its own (onesnapshot.go). Three
// ideas are built on that, each with its own switch and each with its safety argument at the top of
// its file:
//
//   - push.go: followers learn of a commit at once. Invariant of every push:
//     LeaderCommitIndex <= PrevLogEntry = the last entry that this follower acknowledged in this
//     term, and LeaderCommitIndex <= what the leader's own state machine has applied.
//   - overlap.go: the leader's disk sync runs beside the followers'. Invariant: raft hears of a
//     follower's match at index m only when every record with an index <= m is on the leader's
//     disk and on that follower's.
//   - failover.go: when the leader's process dies the election starts at once. Invariant: only the
//     moment of an election is chosen here; terms, votes and log comparison stay raft's.
//
// Raft's back-off against a follower that is out of reach is kept short by the way (retry.go),
// and the leader knows who needs the log behind a snapshot (receivers.go).
//
// # Concurrency
//
// New starts the pump between the NetworkTransport and raft's main
// loop, one goroutine that accepts append connections and one for each of them, the failure detector
// and, for each follower that this server leads, one pusher. A withheld answer
// has a goroutine only while a record of this server may still be volatile, an asked or given vote
// one for its duration. All are tracked; Close ends them and waits.
//
// Promised: RPCs of one connection reach raft in the order of their arrival. Not promised: any
// order between connections. Committed and the report of an ended connection never block. A slow
// follower delays only its own pusher. Close waits for a disk write whose answer is withheld, so a
// store whose disk hangs has to be failed or closed first.
//
// There are four locks (pusher.mu, detector.mu, holder.mu, behind.mu) besides the one that counts
// goroutines (group.mu). None is held while another is taken, except that pusher.mu is held while a
// pusher starts (group.mu); none is held over network, disk or raft's main loop.
package transport
