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
// Handler; it never waits for network or disk. Once raft runs, one goroutine each
// watches leadership, forwards commands (and one more reads the stream from the leader),
// accepts streams (and one more serves each), takes snapshots, watches the disk, gives
// votes to new servers, and clears a stale leader. One accepts control connections
// (and one more serves each) from Open to Close. While this server leads, one proposes,
// and one waits for each entry in flight. For a while after the start, one forms the
// ensemble or tells the others of it, one checks that they are in the same ensemble, and
// one publishes this server's addresses.
//
// Locks: forwarder.mu, reign.mu, refusals.mu, streams.mu, proposals.mu, Node.mu, Node.forming. Each is
// taken alone, and nothing is called out to under it, except that the disk is written under the
// last. The FSM goroutine holds the Handler's view lock when it takes forwarder.mu.
package consensus
