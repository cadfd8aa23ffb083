// Package upgrade tests that an ensemble is upgraded and downgraded server by server while clients use it.
//
// The release before is built from its commit (releases.txt); the next one from this checkout with the tag nextrelease,
// which adds an operation, a field and a feature level. Foreign clients are programs in testdata. It starts no
// goroutine but those of its load.
package upgrade
