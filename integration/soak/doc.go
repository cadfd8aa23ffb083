// Package soak lets clients work at both ports of an ensemble of real processes
// while their processes, disks and network are broken, writes down what they were
// told, and has package check judge it. It has no code but tests; they need -tags
// soak, and root for the network. Run it with "make soak DURATION=1h SEED=n".
//
// A run is a row of windows. In each, new clients work below a root of its own
// while faults come and go; then everything is healed, and the window's history is
// judged by itself, which bounds what the search for a linear order costs. The
// truth that histories are compared with is a stream of all changes that one
// client follows over HTTP, across all that happens to the servers, and the tree at
// the end.
//
// The servers' data is on disks of the test's own (integration/cluster/disk), which
// fill up, slow down, fail a sync and lose their power as the other faults come.
//
// Not here: disks that lie, which may lose what was acknowledged (integration/failover
// shows that this is noticed), and jumps of the wall clock, which no kernel gives to
// one process alone.
//
// TestEdge has the same windows without faults, at servers whose tree is full and whose
// descriptors are taken ("make edge DURATION=10m").
//
// # Concurrency
//
// Every worker is one goroutine and hands its notes to the window's recorder, which
// has a mutex. Faults are one after the other, on the test's goroutine.
package soak
