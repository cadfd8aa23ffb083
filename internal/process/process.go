// Package process says what this process uses, as Prometheus's client libraries say it, and how much room is left on
// a disk. It starts no goroutine.
package process

import "time"

var started = time.Now()

// Usage is what the process uses.
type Usage struct {
	Started  time.Time     // when, about
	CPU      time.Duration // of all its threads, since the start
	Resident int64         // bytes of memory; 0: not known on this system
}
