package fair

import (
	"sync"
	"sync/atomic"
	"time"
)

// Turns lets a number of members work at a time, and each of them for about Slice while others wait. Its methods may be
// called from several goroutines at once.
type Turns struct {
	free atomic.Int64 // turns that no one has; below zero, so many members wait or are about to

	mu     sync.Mutex // protects the fields below
	order  Order
	spared int // turns that were given back for members that are about to wait
}

// Slice is how long a member works while others wait, if it can stop.
const Slice = time.Millisecond

// NewTurns returns so many turns.
func NewTurns(n int) *Turns {
	t := new(Turns)
	t.free.Store(int64(n))
	return t
}

// Take waits for a turn.
func (t *Turns) Take(m *Member) {
	if t.free.Add(-1) >= 0 {
		return
	}
	t.mu.Lock()
	if t.spared > 0 {
		t.spared--
		t.mu.Unlock()
		return
	}
	t.order.Push(m)
	t.mu.Unlock()
	<-m.Granted()
}

// Give ends a turn of m, in which it has done so much work, such as requests. (Not so long: a member that the system
// has interrupted has done no more.) Work counts while others wait.
func (t *Turns) Give(m *Member, work int) {
	if t.free.Add(1) > 0 {
		return
	}
	t.mu.Lock()
	t.order.Charge(m, int64(work))
	next := t.order.Pop()
	if next == nil {
		t.spared++
	}
	t.mu.Unlock()
	if next != nil {
		next.Grant()
	}
}

// Waits reports whether a member waits.
func (t *Turns) Waits() bool { return t.free.Load() < 0 }
