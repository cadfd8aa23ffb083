// Command fenced shows what a lock alone cannot do, and what a fencing token does
// about it.
//
// Two holders add to a counter in a store, each time under a lock: read, add one,
// write. Now and then one of them stands still between reading and writing for
// longer than its session lives (as a garbage collection, a swapped laptop or a
// broken network may have it). The lock goes to the other, who reads and writes.
// When the first wakes up it does not know what has happened, and writes, too.
// The store refuses it, because its token is older than one the store has seen;
// otherwise the other's addition would be lost.
//
//	go run ./cmd/zk-lite dev    # in one terminal
//	go run ./examples/fenced    # in another; Ctrl-C ends it
//
// The store is the part to take away (store.go). It knows no lock service: it
// compares two numbers.
package main
