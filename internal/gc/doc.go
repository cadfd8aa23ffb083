// Package gc sets Go's garbage collector by the machine's memory, which it measures. Only the command line starts it.
//
// Go collects when the heap has doubled. A server with a small tree has a live heap of ten megabytes and
// allocates a hundred times that every second, so it would collect all the time: a quarter of its CPU
// went there (docs/performance.md). Tune gives every heap room for at least a part of the machine's
// memory; a larger heap is collected when it has doubled, as usual. A soft limit makes the collector work
// harder before the machine or its control group runs out of memory.
//
// The environment variables GOGC and GOMEMLIMIT, where they are set, have precedence.
//
// # Concurrency
//
// Tune starts no goroutine: after each collection the runtime's own finalizer goroutine reads how much
// memory is in use. Tune may be in effect once in a process. There are no locks.
package gc
