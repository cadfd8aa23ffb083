// Package testserver is for the tests of the examples: an ensemble of servers in
// this process, clients whose connections can be cut, and the death of a process
// as the others see it.
//
// Processes are the same as real processes, copies of the test binary that are killed
// (SIGKILL) and paused (SIGSTOP): servers, and whatever roles an example has.
//
// It knows nothing of the examples, and is not for other tests: those of the
// recipes have a kit of their own, which also runs against Apache ZooKeeper.
//
// # Concurrency
//
// The servers have their own goroutines. An Ensemble belongs to the goroutine of its test.
package testserver
