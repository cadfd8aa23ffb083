// Package processors lets the number of Go's processors (GOMAXPROCS) follow what the process
// uses of them: one while it needs less than one, all of them from the moment at which it needs more.
//
// With more than one, Go wakes a second thread whenever a goroutine becomes ready, in case there is
// more to do, and parks it again when there is not. A server that is told of an entry, writes it and passes
// it on does this several times an entry, and three servers on a small machine take the processors for that
// from each other: a sixth of their CPU went there (docs/performance.md, docs/adr/0012).
//
// Work on files that blocks for long asks for all of them (Hold).
//
// The environment variable GOMAXPROCS, where it is set, has the last word.
//
// # Concurrency
//
// Follow runs one goroutine until it is stopped. It may be in effect once in a process.
package processors
