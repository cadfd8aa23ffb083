// Package story contains the stories: runs of the lectures in steps, one idea per step, most
// with a question to answer before the run does. Each is a text file in stories/, embedded in
// the binary, in this form:
//
//	title: Bully in five message times
//	slides: 1, 2, 4 "Bully Algorithm: Example"
//	command: election --algorithm bully --ids 3,5,6,12,32,80 --crash 80@0 --initiator 6
//	says: leader N32, time 5
//
//	step 0
//	What there is to see at time 0, in lines of prose.
//	? What will happen? Predict first.
//	- A wrong answer to choose
//	+ The right one
//	! What did, and why.
//
// A step may have a command of its own, with lines of its output, which holds from there on.
// The lines must occur in the output of the command line: a test compares. Sheet writes the
// sheet for a teacher.
// slides.md maps the slides of the lectures to stories and commands; Slides reads it.
//
// The package runs nothing.
package story
