// Package gc sets Go's garbage collector by the machine's memory.
//
// Go collects when the heap has doubled. A server with a small tree has a live
// heap of ten megabytes and allocates a hundred times that every second, so it
// would collect all the time, and a quarter of its CPU went there (docs/performance.md).
// Tune gives every heap room for at least a part of the machine's memory; a heap larger than
// that is collected when it has doubled, as ever. A soft limit makes the collector
// work harder before the machine or its control group runs out of memory.
//
// The environment variables GOGC and GOMEMLIMIT, where they are set, have the last word.
//
// # Concurrency
//
// Tune starts no goroutine: after each collection the runtime's own finalizer
// goroutine looks at what has lived. Tune may be in effect once in a process.
package gc
