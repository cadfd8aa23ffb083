package consensus

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// repeatEvery is how often a message of raft that is said again and again is logged: a
	// peer that is away is reported several times a second.
	repeatEvery = time.Minute
	// maxRepeats bounds the messages that are remembered; raft has some ten of a kind, for
	// each of a handful of servers.
	maxRepeats = 256
)

// repeats finds messages that were logged a moment ago.
type repeats struct {
	mu   sync.Mutex // protects the field below
	seen map[string]repeat
}

type repeat struct {
	logged  time.Time
	leftOut int // since then
}

// pass reports whether a message may be logged, and how often it was left out before.
func (r *repeats) pass(key string) (ok bool, leftOut int) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.seen[key]
	if known && now.Sub(last.logged) < repeatEvery {
		last.leftOut++
		r.seen[key] = last
		return false, 0
	}
	if !known && len(r.seen) >= maxRepeats {
		r.sweepLocked(now)
	}
	if r.seen == nil {
		r.seen = map[string]repeat{}
	}
	r.seen[key] = repeat{logged: now}
	return true, last.leftOut
}

// sweepLocked makes room. At worst lines are repeated.
func (r *repeats) sweepLocked(now time.Time) {
	for key, x := range r.seen {
		if now.Sub(x.logged) >= repeatEvery {
			delete(r.seen, key)
		}
	}
	if len(r.seen) >= maxRepeats {
		clear(r.seen)
	}
}

// repeatKey is what two messages have in common that say the same of the same servers.
func repeatKey(name, msg string, args []any) string {
	var b strings.Builder
	b.WriteString(name + "\x00" + msg)
	for i := 0; i+1 < len(args); i += 2 {
		switch args[i] {
		case "error", "time", "backoff time": // never twice the same
		default:
			fmt.Fprintf(&b, "\x00%v=%v", args[i], args[i+1])
		}
	}
	return b.String()
}
