// Package repeats keeps a log readable when the same is said again and again: it says
// which messages to leave out, and how many were. It logs nothing itself.
package repeats

import (
	"sync"
	"time"
)

const (
	// Every is how often what is said again and again passes.
	Every = time.Minute
	// maxKeys bounds what is remembered: some ten kinds of messages, each about a handful
	// of servers.
	maxKeys = 256
)

// Filter knows what has passed a moment ago. The zero value is ready for use, by several
// goroutines at once.
type Filter struct {
	mu   sync.Mutex // protects the field below
	seen map[string]passed
}

type passed struct {
	at      time.Time
	times   int // since then
	leftOut int // the same
}

// Pass reports whether a message may be logged, and how often one with the same key was
// left out before.
func (f *Filter) Pass(key string) (ok bool, leftOut int) { return f.PassSome(1, key) }

// PassSome is Pass for messages that differ in what the key leaves out: so many may be logged.
func (f *Filter) PassSome(most int, key string) (ok bool, leftOut int) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.seen[key]
	if known && now.Sub(last.at) < Every {
		if ok = last.times < most; ok {
			last.times++
		} else {
			last.leftOut++
		}
		f.seen[key] = last
		return ok, 0
	}
	if !known && len(f.seen) >= maxKeys {
		f.sweepLocked(now)
	}
	if f.seen == nil {
		f.seen = map[string]passed{}
	}
	f.seen[key] = passed{at: now, times: 1}
	return true, last.leftOut
}

// sweepLocked makes room. At worst lines are repeated.
func (f *Filter) sweepLocked(now time.Time) {
	for key, x := range f.seen {
		if now.Sub(x.at) >= Every {
			delete(f.seen, key)
		}
	}
	if len(f.seen) >= maxKeys {
		clear(f.seen)
	}
}
