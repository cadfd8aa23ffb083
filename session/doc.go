// Package session holds the sessions of the ensemble's clients: the replicated table
// of sessions, and the leader's clock that finds those whose clients are silent.
//
// The table (Table) is part of the replicated state: the same commands in the
// same order leave the same table on every server. The clock (Tracker, Clock) is the
// leader's alone, is never replicated, and only proposes: that a session has
// expired is decided by the command that closes it.
//
// The package opens no connection, proposes no command and reads no time: times
// are arguments.
//
// # Concurrency
//
// The package starts no goroutine. A Table belongs to the state machine's goroutine,
// a Clock to its Tracker, which has a lock.
package session
