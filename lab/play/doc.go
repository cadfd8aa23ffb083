// Package play runs the lab's commands: it reads the words of a command line, such as
//
//	election --algorithm bully --ids 3,5,6,12,32,80 --crash 80@0 --initiator 6
//
// makes a configuration of them, runs it, and returns its trace (Run), or the pieces from which
// a command line prints (Command). The command line's flags, the reference page and a page in a
// browser are all made from the table of a command's options, so that one line means the same
// run everywhere.
//
// It has no files, no network and no clock, so that it can run in a browser. It
// simulates nothing itself.
package play
