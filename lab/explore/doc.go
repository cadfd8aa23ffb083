// Package explore looks for runs that nobody has thought of. Search goes through every
// order in which the messages, timers and requests of a few processes can follow each
// other, with crashes and losses if asked for, and returns the shortest run to each state
// that breaks a promise. Worst looks for the arrangement of a ring that costs the most.
//
// There is no time in an exploration: the adversary decides what happens next. A timer may
// run out whenever it is set, or, with Config.Timely, only when no message is under way,
// which is what timeouts longer than every delay amount to.
//
// A run that goes on for ever is found, too, when all states have been looked at: it is in a
// state from which no order leads to one where all is well, or where nothing is left to
// happen (Endless).
//
// It works on the same step functions as package sim, which it does not use to run them:
// a world is a value, and a step makes another one. What it proves holds for the number of
// processes given, if it says that it went through all.
package explore
