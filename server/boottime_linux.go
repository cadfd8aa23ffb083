package server

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the time since the machine's start, with that for which it slept.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil { // no such clock: the monotonic one is left
		return 0
	}
	return time.Duration(t.Nano())
}
