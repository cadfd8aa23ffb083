// Package consensus makes the servers of an ensemble agree on one log of
// commands, with hashicorp/raft, and applies it to the state machine
// (consensus/state). Together with the packages below it is the only part of the
// product that touches raft; RAFT.md lists what they rely on.
//
// It has no clients or protocols: it reports to a Handler (package server) what it applies.
//
//   - Node puts one server's part together (node.go), starts raft (start.go), and connects it with the others
//     (peers.go);
//   - package forward brings commands to the leader and makes entries of them;
//   - fsm.go applies entries, and brings each result to the Waiter of its command;
//   - leadership.go asks raft who leads and publishes it (package leadership), leaderfaults.go repairs what goes wrong
//     with leaders;
//   - halt.go ends this server's part, when it was removed or is not to be trusted (package selfcheck);
//   - status.go reports how this server does;
//   - package founding founds the ensemble or joins it, at the first start;
//   - package membership changes and reports who is a member;
//   - package storage keeps files, and watches how long raft waits for them;
//   - package transport carries raft's messages, and repairs what raft does wrong.
//
// When the leader fails or a stream breaks, every command without a result is sent again to the next
// leader; the state machine drops what it has seen. So a client of a server that goes on notices nothing,
// and its write happens once.
//
// # Goroutines and locks
//
// raft's FSM goroutine is the only writer of the state machine and calls the Handler; it never waits for
// network or disk. Once raft runs, one goroutine each watches leadership, takes snapshots, and publishes this
// server's addresses, which ends when it is done. The packages below list theirs. Close waits for all but
// those that wait for an answer that raft may never give.
//
// Locks: Node.starting, refusals.mu. Each is taken alone. Under Node.starting raft is attached to
// the parts, and the node's context is ended; under the other one nothing is called.
package consensus
