package zk

import (
	"math/rand/v2"
	"sync"
	"time"
)

// ConnectionThrottle bounds how fast sessions are opened, as ZooKeeper's BlueThrottle does: a bucket of tokens of
// which each session takes some and, with Freeze, a chance to be refused that rises while the bucket is empty.
type ConnectionThrottle struct {
	MaxTokens int           // of the bucket; 0: no throttle
	FillTime  time.Duration // after which FillCount tokens come
	FillCount int
	// Freeze is the time between two changes of the chance; 0: there is none.
	Freeze                 time.Duration
	DropIncrease, Decrease float64 // of the chance, when the bucket is empty and when it is full enough
	DecreaseRatio          float64 // of MaxTokens that may be missing from one that is full enough
	// New and Renewed are what a session takes that is opened, and one that comes back; 0: one.
	New, Renewed int
}

// throttle is the state of a ConnectionThrottle.
type throttle struct {
	cfg    ConnectionThrottle
	random func() float64

	mu     sync.Mutex // protects the fields below
	tokens int
	filled time.Time
	frozen time.Time // when the chance was last looked at
	chance float64
}

func newThrottle(cfg ConnectionThrottle) *throttle {
	now := time.Now()
	return &throttle{cfg: cfg, random: rand.Float64, tokens: cfg.MaxTokens, filled: now, frozen: now}
}

// admit takes the tokens of a session; it reports false when that has to wait.
func (t *throttle) admit(now time.Time, renewed bool) bool {
	if t.cfg.MaxTokens == 0 {
		return true
	}
	need := max(t.cfg.New, 1)
	if renewed {
		need = max(t.cfg.Renewed, 1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if passed := now.Sub(t.filled); passed >= t.cfg.FillTime {
		periods := int64(passed / t.cfg.FillTime)
		// A long pause must not overflow.
		if periods >= int64(t.cfg.MaxTokens) {
			t.tokens, t.filled = t.cfg.MaxTokens, now
		} else {
			t.tokens = min(t.tokens+int(periods)*t.cfg.FillCount, t.cfg.MaxTokens)
			t.filled = t.filled.Add(time.Duration(periods) * t.cfg.FillTime)
		}
	}
	if t.cfg.Freeze > 0 && !t.luckyLocked(now) || t.tokens < need {
		return false
	}
	t.tokens -= need
	return true
}

// AdmitSession takes the tokens of a session that is opened over HTTP, which counts as one of this port; it reports
// false when that has to wait.
func (ln *Listener) AdmitSession() bool { return ln.throttle.admit(time.Now(), false) }

// luckyLocked moves the chance to be refused, and draws.
func (t *throttle) luckyLocked(now time.Time) bool {
	if now.Sub(t.frozen) > t.cfg.Freeze {
		missing := t.cfg.MaxTokens - t.tokens
		switch {
		case missing == t.cfg.MaxTokens:
			t.chance = min(t.chance+t.cfg.DropIncrease, 1)
		case float64(missing) <= float64(t.cfg.MaxTokens)*t.cfg.DecreaseRatio:
			t.chance = max(t.chance-t.cfg.Decrease, 0)
		}
		t.frozen = now
	}
	return t.random() >= t.chance
}

// requestSlots bounds the requests of all clients that wait for their result; nil: no bound.
type requestSlots chan struct{}

// take waits until there is a slot. It reports false if the client has gone before.
func (s requestSlots) take(c *conn) bool {
	select {
	case s <- struct{}{}:
		return true
	default:
	}
	c.out.wake() // what is answered does not wait
	select {
	case s <- struct{}{}:
		return true
	case <-c.gone:
		return false
	}
}
