// Package election contains the leader election algorithms of the lectures as pure step
// functions, one per file, and runs them on package sim under checkers of safety and liveness.
//
// It is for the simulator only: the election for real programs is in the recipes, and the page
// lab/testdata/elections.md explains what each algorithm teaches, where it comes from and how
// its messages are counted.
//
// # Promises checked
//
// Safety, after the lectures: a process that is up holds as its leader either no process or
// one, the same for all, that is up and has the best attribute among those up. It is judged at
// the end of a run. During a run it is also judged that no two processes that are up lead for
// longer than the one message time a takeover needs (algorithms with terms: that no two ever
// lead in the same term), and that no process declares itself although a better one was up for
// the whole of the election.
//
// Liveness: at the end of the run every process that is up holds a leader.
package election
