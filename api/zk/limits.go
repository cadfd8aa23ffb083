package zk

import (
	"container/list"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// shares bounds the bytes of one kind that all connections hold together: parts of requests, or replies and events
// that wait to be sent. Over the limit, it closes the connection that has held bytes for longest without taking any; a
// client that sends or reads without pause is done long before. A single share may be larger than the limit.
type shares struct {
	limit int64
	close func(net.Conn) // closes a connection; must not block
	spare bool           // the connection whose share grows is not closed for it

	closed atomic.Int64 // counts the connections that were closed

	mu    sync.Mutex // protects the fields below, and those of every share but conn
	bytes int64
	queue list.List // of *share, the first to be closed in front
}

// share is what one connection holds.
type share struct {
	conn  net.Conn
	place *list.Element // in the queue; nil: nothing is held
	held  int           // bytes
	cut   bool          // the connection is being closed
}

// hold sets a share to n bytes, and closes connections if the sum is over the limit. If n is less than before, but not
// 0, the client has taken the difference.
func (a *shares) hold(s *share, n int) {
	for _, c := range a.count(s, n) {
		a.closed.Add(1)
		a.close(c)
	}
}

// count returns the connections to close.
func (a *shares) count(s *share, n int) (out []net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case s.cut:
		return nil // its next read or write will fail
	case n == 0:
		a.removeLocked(s)
		return nil
	case s.place == nil:
		s.place = a.queue.PushBack(s)
	case n < s.held:
		a.queue.MoveToBack(s.place)
	}
	a.bytes += int64(n - s.held)
	s.held = n
	for a.bytes > a.limit && a.queue.Len() > 1 {
		first := a.queue.Front().Value.(*share)
		if first == s && a.spare {
			break
		}
		a.removeLocked(first)
		first.cut = true
		out = append(out, first.conn)
	}
	return out
}

// took notes that the client has taken bytes of its share.
func (a *shares) took(s *share) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.place != nil {
		a.queue.MoveToBack(s.place)
	}
}

func (a *shares) removeLocked(s *share) {
	if s.place != nil {
		a.queue.Remove(s.place)
		a.bytes -= int64(s.held)
		s.place, s.held = nil, 0
	}
}

// sum returns the bytes that are held.
func (a *shares) sum() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// longReply is the size in bytes above which replies need a place in replyRoom.
const longReply = 2 << 20

// replyRoom bounds the bytes of the long replies that are made at a time: they are in memory before the first byte can
// be sent, or its client cut off.
type replyRoom struct {
	limit int64
	bytes atomic.Int64
}

// reserve takes room for a reply of n bytes. It reports false if there is none; a single reply may be larger than the
// bound.
func (a *replyRoom) reserve(n int) bool {
	if n <= longReply {
		return true
	}
	if sum := a.bytes.Add(int64(n)); sum > a.limit && sum > int64(n) {
		a.bytes.Add(-int64(n))
		return false
	}
	return true
}

// release ends what reserve has begun.
func (a *replyRoom) release(n int) {
	if n > longReply {
		a.bytes.Add(-int64(n))
	}
}

// requestSlots bounds the requests of all clients that wait for their result; nil: no bound.
type requestSlots chan struct{}

// take waits for a slot. It reports false if the connection ends first.
func (s requestSlots) take(c *conn) bool {
	select {
	case s <- struct{}{}:
		return true
	default:
	}
	c.sc.Load().Rest()
	c.out.wake() // replies that are ready do not wait
	select {
	case s <- struct{}{}:
		return true
	case <-c.gone:
		return false
	}
}

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

// admit takes the tokens of a session. It reports false if there are not enough.
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

// AdmitSession takes the tokens of a session that is opened over HTTP, which counts as one of this port. It reports
// false if there are not enough.
func (ln *Listener) AdmitSession() bool { return ln.throttle.admit(time.Now(), false) }
