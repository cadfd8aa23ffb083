// Package soak runs the clients of integration/workload at an ensemble of real processes while their
// processes, disks and network are broken. It has no code but tests; they need -tags soak, and root
// for the network. Run it with "make soak DURATION=1h SEED=n".
//
// A run is a series of windows (integration/workload): clients work while faults begin and end; then everything is
// healed, and the history is judged.
//
// The servers' data is on disks of the test's own (integration/cluster/disk), which fill up,
// slow down, fail a sync and lose power like the other faults.
//
// Not here: disks that lie, which may lose acknowledged data (integration/failover shows that
// this is noticed), and jumps of the wall clock, which no kernel can give to one process alone.
//
// TestEdge has the same windows without faults, at servers whose tree is full and whose
// descriptors are in use ("make edge DURATION=10m").
//
// # Concurrency
//
// Faults are one after the other, on the test's goroutine.
package soak
