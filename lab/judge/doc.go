// Package judge runs a user's own program as the processes of an election or of a lock, on the
// lab's simulator and under its checkers, with seeded faults; and makes a failing run as small
// as it can before it shows it.
//
// The program is started once for each process, with no arguments, and stays for all runs: the
// protocol is in protocol.md, which is embedded, and programs to begin with are in skeleton.
//
// # Who does what
//
// One goroutine per process reads the program's output; it ends with the program. All else runs
// in the caller's.
package judge
