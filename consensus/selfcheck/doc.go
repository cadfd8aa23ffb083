// Package selfcheck finds servers of one ensemble whose histories or states differ, though they should not: because
// data directories were put back from old copies, a disk has lost what it had reported as synced, or memory or the
// program is broken.
//
// Record is what a server has applied: points of its history (state.Point) and digests of its state. Answer is what
// it tells another. Compare and CompareDigests judge answers. Package consensus asks, computes, and acts on it.
//
// The package starts no goroutine. It has one lock, Record.mu, under which it calls nothing.
package selfcheck
