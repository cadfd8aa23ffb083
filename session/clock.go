package session

import (
	"container/heap"
	"fmt"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/znode"
)

// Tracker tracks the sessions of the ensemble on the server that leads, and finds those that have expired.
// On any other server it is idle. It is safe for concurrent use; nothing else is locked under its lock.
type Tracker struct {
	tick time.Duration

	mu    sync.Mutex // protects the fields below
	term  uint64     // 0: this server does not lead
	clock *Clock
}

// NewTracker returns an idle Tracker whose deadlines are multiples of tick.
func NewTracker(tick time.Duration) *Tracker { return &Tracker{tick: tick} }

// Lead begins to track all sessions of the table, each with a full timeout from now, because this server leads
// in the given term. With term 0 the Tracker becomes idle.
func (t *Tracker) Lead(term uint64, table *Table, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.term, t.clock = term, nil
	t.trackLocked(table, now)
}

// TrackAll gives all sessions of the table, and no others, a full timeout from now.
func (t *Tracker) TrackAll(table *Table, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trackLocked(table, now)
}

func (t *Tracker) trackLocked(table *Table, now time.Time) {
	if t.term == 0 {
		return
	}
	t.clock = NewClock(t.tick)
	table.Each(func(s *Session) { t.clock.Track(s.ID, lease(s.Timeout), now) })
}

// Leads reports whether this server leads.
func (t *Tracker) Leads() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term != 0
}

// Track gives a session, which was opened or reattached, a full timeout from now.
func (t *Tracker) Track(s *Session, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term != 0 {
		t.clock.Track(s.ID, lease(s.Timeout), now)
	}
}

// Remove stops tracking a session, which was closed.
func (t *Tracker) Remove(id znode.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term != 0 {
		t.clock.Remove(id)
	}
}

// Touch gives sessions a full timeout from now: a server has heard their clients.
func (t *Tracker) Touch(server uint64, ids []znode.SessionID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term == 0 {
		return
	}
	for _, id := range ids {
		t.clock.Touch(id, now, server)
	}
}

// Delay postpones all deadlines by d, during which no client could be heard. It reports whether this server
// leads; if it does not, there is nothing to postpone.
func (t *Tracker) Delay(d time.Duration) (leads bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term == 0 {
		return false
	}
	t.clock.Delay(d)
	return true
}

// Expire stops tracking the sessions whose deadline has come, and returns them with the term in which they
// expire.
func (t *Tracker) Expire(now time.Time) (silent []Silent, term uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term == 0 {
		return nil, 0
	}
	return t.clock.Expire(now), t.term
}

// Deadlines returns the sessions by the moments at which they would expire, in milliseconds since the epoch.
func (t *Tracker) Deadlines() map[int64][]znode.SessionID {
	all := map[int64][]znode.SessionID{}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term != 0 {
		t.clock.Deadlines(func(at time.Time, ids []znode.SessionID) { all[at.UnixMilli()] = ids })
	}
	return all
}

// lease is how long a session lives without a sign of its client: its timeout.
func lease(timeout time.Duration) time.Duration {
	if fault.On(fault.ExpireEarly) {
		return timeout / 4
	}
	return timeout
}

// Clock finds the sessions that have been silent for their timeout. Deadlines
// round up to the next multiple of the tick, so that sessions fall into
// buckets: a heartbeat within the same tick changes nothing, and the sessions
// of one tick expire together (modelled after ZooKeeper's ExpiryQueue). A
// session touched at t expires in (t+timeout, t+timeout+tick], provided that
// Expire is called at the time that Next returns.
//
// Touch and Remove take constant time; Track and Expire add a logarithm of the
// number of buckets, at most one for each tick of the longest timeout.
//
// A Clock is not safe for concurrent use. It reads no time; the times passed in
// should carry Go's monotonic reading (time.Now does), so that a step of the
// wall clock expires no session. Ticks are counted from the first time it sees.
type Clock struct {
	tick time.Duration

	base     time.Time // tick 0; zero before the first Track
	sessions map[znode.SessionID]*tracked
	buckets  map[int64]*bucket
	order    bucketHeap // every bucket of the map, the earliest on top
}

// tracked is one session. It is in exactly one bucket.
type tracked struct {
	id         znode.SessionID
	timeout    time.Duration
	heard      time.Time // the last time
	by         uint64    // the server that heard it then; NotHeard: none since Track
	bucket     *bucket
	prev, next *tracked // in the bucket, a ring through bucket.ring
}

// NotHeard is no server's id.
const NotHeard = 1<<64 - 1

// Silent is a session whose deadline has passed.
type Silent struct {
	ID    znode.SessionID
	Heard time.Time // when its client was last heard, or it was tracked
	By    uint64    // the server that heard it; NotHeard: none since it was tracked
}

// bucket holds the sessions with one deadline, in the order they got it. An
// empty bucket stays until it is on top of the heap, because it is likely to be
// used again.
type bucket struct {
	tick int64
	ring tracked // sentinel
}

// NewClock returns a Clock without sessions whose deadlines are multiples of tick.
// It panics unless tick is positive.
func NewClock(tick time.Duration) *Clock {
	if tick <= 0 {
		panic(fmt.Sprintf("session: the clock's tick must be positive, got %v", tick))
	}
	return &Clock{
		tick:     tick,
		sessions: make(map[znode.SessionID]*tracked),
		buckets:  make(map[int64]*bucket),
	}
}

// Len is the number of sessions in the clock.
func (c *Clock) Len() int { return len(c.sessions) }

// Track adds a session to the clock with a full timeout from now. If the
// session is already there, it changes the timeout and restarts it, as for a
// reconnect with another timeout.
func (c *Clock) Track(id znode.SessionID, timeout time.Duration, now time.Time) {
	if c.base.IsZero() {
		c.base = now
	}
	s := c.sessions[id]
	if s == nil {
		s = &tracked{id: id}
		c.sessions[id] = s
	}
	s.timeout, s.heard, s.by = timeout, now, NotHeard
	c.move(s, c.deadline(timeout, now))
}

// Touch gives a session a full timeout from now, because the given server heard its client. It never brings a
// deadline forward, so heartbeats may be reported late and out of order. It reports false for a session that is not
// in the clock.
func (c *Clock) Touch(id znode.SessionID, now time.Time, by uint64) bool {
	s := c.sessions[id]
	if s == nil {
		return false
	}
	if !now.Before(s.heard) {
		s.heard, s.by = now, by
	}
	if tick := c.deadline(s.timeout, now); tick > s.bucket.tick {
		c.move(s, tick)
	}
	return true
}

// Delay postpones every deadline by d: while no server listened to heartbeats,
// their absence means nothing.
func (c *Clock) Delay(d time.Duration) {
	if !c.base.IsZero() && d > 0 {
		c.base = c.base.Add(d)
	}
}

// Remove removes a session from the clock, if it is there.
func (c *Clock) Remove(id znode.SessionID) {
	if s := c.sessions[id]; s != nil {
		s.unlink()
		delete(c.sessions, id)
	}
}

// Expire removes the sessions whose deadline has passed from the clock and
// returns them, the earliest deadline first. If closing one of them fails, the
// caller Tracks it again.
func (c *Clock) Expire(now time.Time) []Silent {
	var dead []Silent
	for c.dropEmpty() {
		b := c.order[0]
		if c.at(b.tick).After(now) {
			break
		}
		for s := b.ring.next; s != &b.ring; s = b.ring.next {
			dead = append(dead, Silent{s.id, s.heard, s.by})
			s.unlink()
			delete(c.sessions, s.id)
		}
	}
	return dead
}

// Next is the earliest deadline, when to call Expire; false if there is no
// session.
func (c *Clock) Next() (time.Time, bool) {
	if !c.dropEmpty() {
		return time.Time{}, false
	}
	return c.at(c.order[0].tick), true
}

// Deadlines calls visit with each time at which sessions would expire, and their ids.
func (c *Clock) Deadlines(visit func(at time.Time, ids []znode.SessionID)) {
	for _, b := range c.order {
		var ids []znode.SessionID
		for s := b.ring.next; s != &b.ring; s = s.next {
			ids = append(ids, s.id)
		}
		if len(ids) > 0 {
			visit(c.at(b.tick), ids)
		}
	}
}

// dropEmpty brings a bucket with sessions to the top, and reports false if
// there is none.
func (c *Clock) dropEmpty() bool {
	for len(c.order) > 0 {
		b := c.order[0]
		if b.ring.next != &b.ring {
			return true
		}
		heap.Pop(&c.order)
		delete(c.buckets, b.tick)
	}
	return false
}

// at is the time of a tick.
func (c *Clock) at(tick int64) time.Time {
	return c.base.Add(time.Duration(tick) * c.tick)
}

// deadline is the first tick strictly after now+timeout: a session that is due
// at a tick has been silent for longer than its timeout.
func (c *Clock) deadline(timeout time.Duration, now time.Time) int64 {
	d := now.Sub(c.base) + timeout
	n := int64(d / c.tick)
	if d < 0 && d%c.tick != 0 {
		n-- // division rounds towards zero; time before tick 0 rounds down too
	}
	return n + 1
}

// move puts s at the end of a tick's bucket.
func (c *Clock) move(s *tracked, tick int64) {
	if s.bucket != nil {
		if s.bucket.tick == tick {
			return
		}
		s.unlink()
	}
	b := c.buckets[tick]
	if b == nil {
		b = &bucket{tick: tick}
		b.ring.prev, b.ring.next = &b.ring, &b.ring
		c.buckets[tick] = b
		heap.Push(&c.order, b)
	}
	s.bucket = b
	s.prev, s.next = b.ring.prev, &b.ring
	s.prev.next, s.next.prev = s, s
}

func (s *tracked) unlink() {
	s.prev.next, s.next.prev = s.next, s.prev
	s.prev, s.next = nil, nil
}

// bucketHeap is container/heap's interface over buckets by tick.
type bucketHeap []*bucket

func (h bucketHeap) Len() int           { return len(h) }
func (h bucketHeap) Less(i, j int) bool { return h[i].tick < h[j].tick }
func (h bucketHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *bucketHeap) Push(x any)        { *h = append(*h, x.(*bucket)) }
func (h *bucketHeap) Pop() any {
	old := *h
	b := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return b
}
