package kerberos

import (
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

const (
	// replayWindow is how long an authenticator is good, from one end of the skew to the other.
	replayWindow = 2 * skew
	// maxReplays bounds the logins of one window, which take some 10 MiB.
	maxReplays = 1 << 17
)

// Replays remembers which authenticators clients have used (RFC 4120, 3.2.3), in memory: those of before the start are
// not known. The zero value is ready.
type Replays struct {
	mu       sync.Mutex // protects the fields below
	now, old map[[sha256.Size]byte]struct{}
	since    time.Time      // of now
	by       map[string]int // of now, by the principal
}

// add remembers one of a principal. The error says that it was used before, or that there is no room for it: a
// principal may have as many as there is room left for, so that whoever takes much leaves as much to all others.
func (r *Replays) add(principal string, sum [sha256.Size]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := time.Now(); r.now == nil || t.Sub(r.since) >= replayWindow {
		if r.old = r.now; t.Sub(r.since) >= 2*replayWindow {
			r.old = nil
		}
		r.now, r.by, r.since = map[[sha256.Size]byte]struct{}{}, map[string]int{}, t
	}
	_, before := r.now[sum]
	if _, long := r.old[sum]; before || long {
		return errors.New("the token was used before")
	}
	if r.by[principal] >= maxReplays-len(r.now) {
		return errors.New("too many logins of this principal: their tokens could not be told from replayed ones")
	}
	r.now[sum] = struct{}{}
	r.by[principal]++
	return nil
}
