// Package recipes runs all recipes for any length of time against an ensemble of real server
// processes, while a schedule made from a seed kills (SIGKILL), pauses (SIGSTOP) and restarts
// them and cuts clients off, and checks the guarantees of each recipe.
//
// It has no code but one test. `go test` runs a slice of some seconds; for more:
//
//	make soak-recipes DURATION=10m SEED=1
//
// The checks are of two kinds. Those by token, and those of intervals that are certain (a lock
// that was released without having been lost was held from the return of Lock to the call of
// Release), need no clock and hold on any machine. That no two clients believe at the same
// moment that they hold the same lock is a promise about clocks: it is checked unless this
// process itself stood still.
//
// # Concurrency
//
// The schedule runs on the test's goroutine, as package cluster requires. Every worker has a
// goroutine of its own, which ends when soak.stop does.
package recipes
