// Package clock lets virtual time pass in tests that run in a testing/synctest bubble. Its one job
// is to ensure that they do: outside of a bubble, where a test would wait for the real clock, and
// be slow and flaky, it panics. Only tests may import it.
package clock

import "time"

// epoch ends the year in which the clock of every bubble starts (testing/synctest: "The initial
// time is midnight UTC 2000-01-01"), and a few more.
const epoch = 2010

// Sleep lets d pass on the bubble's clock, as soon as all its goroutines wait for something.
func Sleep(d time.Duration) {
	if time.Now().Year() >= epoch {
		panic("clock: a test may not sleep in real time: run it in synctest.Test, or wait for a condition")
	}
	time.Sleep(d)
}
