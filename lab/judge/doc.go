// Package judge runs a user's own program as the processes of an election or of a lock, on the
// lab's simulator and under its checkers, with seeded faults; and makes a failing run as small
// as it can before it shows it.
//
// # Protocol
//
// The program is started once for each process, with no arguments, and stays for all runs. It
// reads events from standard input, one JSON object per line, and answers each with exactly one
// line on standard output. Its standard error is passed on.
//
// The first event of a run makes the program forget everything:
//
//	{"event":"init","task":"election","self":3,"ids":[3,5,6],"ring":[3,6,5],"delay_max":1}
//
// ids are all processes, ascending; ring is their order clockwise. delay_max is the longest
// that a message takes; all times are in its unit. Further events have "now":
//
//	{"event":"start","now":0}                       the process is up
//	{"event":"elect","now":0,"suspected":[6]}       election: begin one; these are down
//	{"event":"request","now":0}                     mutex: ask for the critical section
//	{"event":"leave","now":3}                       mutex: the stay inside is over: leave
//	{"event":"message","now":1,"from":5,"type":"election","body":...}
//	{"event":"timeout","now":2,"name":"answer"}     a timer has run out
//	{"event":"suspect","now":2,"id":6}              a crash, told by an accurate detector
//	{"event":"trust","now":9,"id":6}                that process is back
//	{"event":"recover","now":9}                     this process is back after a crash
//
// An answer may have any of these, or be {}:
//
//	{"send":[{"to":5,"type":"answer","body":...}],  messages, in this order
//	 "timers":[{"name":"answer","after":2},         set, or set again
//	           {"name":"wait","cancel":true}],
//	 "leader":6,                                    election: the leader now held; null for none
//	 "enter":true, "exit":true,                     mutex: it enters, it leaves
//	 "variables":{"phase":"waits"}}                 shown in charts
//
// type is any short name; messages are counted by it. body is any JSON, and arrives unchanged.
// A program fails if it answers nothing, anything else, or too late.
//
// # Who does what
//
// One goroutine per process reads the program's output; it ends with the program. All else runs
// in the caller's.
package judge
