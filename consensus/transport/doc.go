// Package transport is the transport that hashicorp/raft runs on, over the connections of package mux.
//
// It keeps no log and decides no membership, and leaves terms, votes and the comparison of logs to raft.
// Package consensus alone imports it.
//
// Transport decorates raft.NetworkTransport, which carries votes; AppendEntries has connections and an
// encoding of its own (package appendrpc), and so have snapshots (outgoing.go, incoming.go). Four faults of
// hashicorp/raft are repaired here, and the repairs cannot be switched off: heartbeats take raft's main
// loop (the fast path changes term and state beside that loop, and can make replicas diverge); pipelining
// is refused (it can wedge after one failed write, and its answers would bypass AppendEntries); a snapshot
// that arrives late is not installed, nor one while the server writes its own (receive.go).
//
// Three ideas are built on that. Each has its own switch, and its safety argument at the top of its file:
//
//   - push.go: followers learn of a commit at once. Invariant of every push:
//     LeaderCommitIndex <= PrevLogEntry = the last entry that this follower acknowledged in this
//     term, and LeaderCommitIndex <= what the leader's own state machine has applied.
//   - overlap.go: the leader's disk sync runs beside the followers'. Invariant: raft sees a
//     follower's match at index m only when every record with an index <= m is on the leader's
//     disk and on that follower's.
//   - failover.go: when the leader's process dies the election starts at once. Invariant: only the
//     moment of an election is chosen here.
//
// Besides, retry.go keeps raft's back-off against a follower out of reach short, and send.go has
// the followers that need the log after a snapshot.
//
// # Concurrency
//
// New starts the pump between the NetworkTransport and raft's main loop, two goroutines that accept the
// connections of appends and snapshots and, unless switched off, the failure detector. There is one
// goroutine more per such connection and, on a leader, one pusher per follower. An answer that is
// delayed, a vote that is asked for or given, and a snapshot that arrives have one for their duration.
// Close ends them all and waits.
//
// Promised: RPCs of one connection reach raft in the order of their arrival. Not promised: any
// order between connections. Committed and the report of an ended connection never block. A slow
// follower delays only its own pusher. Close waits for a disk write on which an answer waits, so a
// store whose disk hangs has to be failed or closed first.
//
// There are seven locks: pusher.mu, detector.mu, retrier.mu, snapshotReceivers.mu, pacer.mu, incoming.mu and
// raftLink.mu, which protects the start of goroutines. None is held while another is taken, except that a pusher starts
// (raftLink.mu) under pusher.mu. None is held over network, disk or raft's main loop. The token of
// snapshotGuard is held while raft writes or installs a snapshot, and incoming.turn before it.
package transport
