// Package backup computes the tree that a restore makes: of the present tree and of a
// backup's, a third one, and the events of the difference.
//
// It does not read files and does not carry a backup through the log: package
// consensus/state does. It is as pure as the tree: no clock, no goroutine, no lock. The
// caller sees to it that nobody changes the two trees meanwhile.
package backup
