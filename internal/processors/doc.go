// Package processors adjusts GOMAXPROCS, the number of processors that run Go code, to what the process
// uses of them: one while it needs less than one, all of them once it needs more. It does nothing else,
// and is started by the command line only. The setting runtime.adjustProcessors turns it off; so does the
// environment variable GOMAXPROCS.
//
// With more than one, Go wakes a second thread whenever a goroutine becomes ready, in case there is more
// to do, and that thread sleeps again when there is not. A server does this several times per entry. Three
// servers on a machine with two cores take the processors for that from each other: a sixth of their CPU
// went there (docs/adr/0012).
//
// The price: when load begins suddenly, requests share one processor for up to 100 ms, or 500 ms if the
// process was idle. A call that blocks on a file keeps the one processor until the runtime's monitor
// thread takes it away, which takes up to 20 ms in a busy process.
//
// # Concurrency
//
// Adjust runs one goroutine until it is stopped. It may be in effect once in a process. There are no
// locks.
package processors
