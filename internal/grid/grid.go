// Package grid lets timers that recur fall together: on multiples of their period on the clock, as those of
// the Linux kernel do that need not be exact (round_jiffies).
//
// A process that is idle is woken for each timer by itself, and in Go more than once: the poller's timeout has
// whole milliseconds, so it ends early and is set again, and the monitor thread wakes for every timer too. Six
// loops that each look after something once a second are six of these; on the grid they are one
// (docs/performance.md). It is for looks of that kind, and neither for timeouts nor where it matters that servers
// do not act at the same time, as in elections.
//
// It starts no goroutine and keeps no timer.
package grid

import "time"

// Until is how long to wait now for the nearest multiple of period that is at least half a period away: between a
// half and one and a half of it. A loop resets its timer to this at every tick. When the clock is set, one period
// is of another length within these bounds.
func Until(period time.Duration) time.Duration {
	wait := Next(period)
	if wait < period/2 {
		wait += period
	}
	return wait
}

// Next is how long it is from now to the next multiple of period: more than 0 and at most period. It is for
// what waits once, and not longer than a period.
func Next(period time.Duration) time.Duration {
	return period - time.Duration(time.Now().UnixNano()%int64(period))
}
