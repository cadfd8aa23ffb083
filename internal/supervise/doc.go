// Package supervise runs a command until it ends, or until a context ends and the command
// must end. It does not depend on locks.
//
// # Concurrency
//
// Run starts one goroutine, which starts the command and waits for it, and
// returns when that has ended.
package supervise
