package rest

import (
	"container/list"
	"sync"
)

// bodies bounds the memory of all requests' bodies, by what has arrived of them. When there is no room for more, those
// are cut off that are not complete, the oldest first: one that is sent without pause is complete long before. All of
// an address have half of the memory at most.
type bodies struct {
	limit int64 // bytes

	mu         sync.Mutex // protects the fields below, and those of every body
	held       int64
	byAddress  map[string]int64 // never 0
	incomplete list.List        // of *body, in the order in which they began
}

// body is what a request holds.
type body struct {
	address string
	held    int64
	place   *list.Element // nil: it is complete
	end     func()        // ends its read; it does not block
	cut     bool          // others needed the room
}

// begin adds a body of which nothing has arrived.
func (t *bodies) begin(address string, end func()) *body {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &body{address: address, end: end}
	b.place = t.incomplete.PushBack(b)
	return b
}

// grow holds n more bytes for a body. It is refused if they do not fit.
func (t *bodies) grow(b *body, n int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.cut {
		return cutOff()
	}
	for e := t.incomplete.Front(); e != b.place && !t.fitsLocked(b, n); {
		oldest := e.Value.(*body)
		e = e.Next()
		if oldest.address == b.address || t.held+n > t.limit {
			t.releaseLocked(oldest)
			oldest.cut = true
			oldest.end()
		}
	}
	if !t.fitsLocked(b, n) {
		return TooMany(1, "there is no memory left for more request bodies, or %s has half of it", b.address)
	}
	b.held += n
	t.held += n
	t.byAddress[b.address] += n
	return nil
}

// fitsLocked: an address's only body may be a large one.
func (t *bodies) fitsLocked(b *body, n int64) bool {
	sum := t.byAddress[b.address]
	return t.held+n <= t.limit && (sum == b.held || sum+n <= t.limit/2)
}

// complete says that a body has arrived, and reports whether that was in time.
func (t *bodies) complete(b *body) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passLocked(b)
	return !b.cut
}

// release ends a body: the request has been answered.
func (t *bodies) release(b *body) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.releaseLocked(b)
}

func (t *bodies) releaseLocked(b *body) {
	t.passLocked(b)
	t.held -= b.held
	if t.byAddress[b.address] -= b.held; t.byAddress[b.address] == 0 {
		delete(t.byAddress, b.address)
	}
	b.held = 0
}

// passLocked takes a body off the list of those that may be cut off.
func (t *bodies) passLocked(b *body) {
	if b.place != nil {
		t.incomplete.Remove(b.place)
		b.place = nil
	}
}

// bytes is how much all bodies hold.
func (t *bodies) bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

func cutOff() *Problem {
	return TooMany(1, "the body came slowly, and others needed the memory; nothing was done")
}
