// Package state is the replicated state machine: it applies a log of commands
// to the tree of znodes and the table of sessions, and reports results and
// events.
//
// It is pure. The same log gives the same state and the same Digest on every
// server and on every replay, because it decides nothing that is not in the
// log: the proposer stamps time, identities, session ids and passwords into the
// entry. A client's bad request is a Result with an error code. An entry that
// cannot be decoded, or has an unknown version, is an error of Apply, after
// which the server must stop.
//
// It has no Raft, no network and no connections: package consensus calls it, and
// package server follows it through an Observer.
//
// # Order and exactly-once
//
// Every server numbers the commands it forwards: (server, incarnation,
// sequence). Apply takes a number only if it is the next one of its origin and
// drops numbers that it has seen, so a server may send a command again whenever
// its outcome is unknown.
//
// # Concurrency
//
// A Machine has one writer, the goroutine that calls Apply, ReadSnapshot and
// Snapshot. Reading it between two calls is safe for others if the caller
// orders them; package server does. Another goroutine may write out a Snapshot
// while the writer continues.
package state
