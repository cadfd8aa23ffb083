// Package problem runs the other topics of the lectures beside elections and mutual exclusion:
// the two generals, two-phase commit and the broadcast of Zab with the same crash, a primary
// with its backup, and a deadlock over several locks that an election breaks. Each is a set of
// pure step functions on package sim, one to a file, with a judge of its own.
//
// It shares no code with the service of this repository; its broadcast has one proposal, for a
// comparison with two-phase commit.
package problem
