// Package explore looks for runs that no one has thought of. Search goes through every order in
// which the messages, timers and requests of a few processes can follow each other, with
// crashes and losses on request, and returns the shortest run to each state that breaks a
// promise. Worst looks for the arrangement of a ring that costs the most.
//
// There is no time in an exploration: the adversary chooses the next event. A timer may run out
// whenever it is set, or, with Config.Timely, only when no message is under way, which amounts
// to timeouts longer than every delay.
//
// A run that continues forever is found, too, when all states have been explored: it is in a
// state from which no order leads to one where all is well, or where nothing is left to happen
// (Endless).
//
// It works on the same step functions as package sim, which it does not use to run them: a
// world is a value, and a step makes another one. Its results are proofs for the given number
// of processes, if it reports that it went through all states.
package explore
