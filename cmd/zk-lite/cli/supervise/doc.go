// Package supervise runs a command for as long as it may run: until it ends by
// itself, or the right to run it is lost. It knows nothing of locks.
//
// # Concurrency
//
// Run starts one goroutine, which starts the command and waits for it, and
// returns when that has ended.
package supervise
