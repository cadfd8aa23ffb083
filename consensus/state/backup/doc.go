// Package backup computes the tree that a restore makes from the current tree and a
// backup's, and the events of the difference.
//
// It does not read files and does not carry a backup through the log: package
// consensus/state does. It is as pure as the tree: no clock, no goroutine, no lock. The
// caller ensures that the two trees do not change meanwhile.
package backup
