// Package mutex contains the distributed mutual exclusion algorithms of the lectures as pure
// step functions, one to a file, and runs them on package sim. It measures the quantities that
// the lectures compare: messages per entry, client delay, synchronisation delay and fairness.
//
// It locks nothing outside the simulator; the lock for real programs is in the
// recipes.
//
// # Promises checked
//
// Safety: at no time are two processes that are up in the critical section. Liveness: at the
// end of the run every request of a process that is up has been served. The classical
// algorithms guarantee liveness only without crashes and losses, and the lab shows why.
package mutex
