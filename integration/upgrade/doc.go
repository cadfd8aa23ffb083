// Package upgrade tests that an ensemble is upgraded and downgraded server by server while clients use it.
//
// The release before is the binary to test (cluster.BinaryVariable); the next one is built from this checkout with the
// tag nextrelease, which adds an operation, a field and a feature level. It starts no goroutine but those of its load.
package upgrade
