package zk

import (
	"container/list"
	"net"
	"sync"
	"sync/atomic"
)

// outboxes bounds what waits for all clients. When that is too much, who has taken nothing for the longest time is cut
// off: a client that reads takes something all the time.
type outboxes struct {
	limit    int64
	close    func(net.Conn) // a client that has to go
	overflow atomic.Int64   // clients that were disconnected because they do not read
	building atomic.Int64   // bytes of long replies that are being made

	mu    sync.Mutex // protects the fields below, and every outbox's place, held and cut
	bytes int64
	queue list.List // of *outbox in which something waits, in the order in which the clients last took some of it
}

// hold counts n bytes that wait in o. Fewer than before means that the client has taken some.
func (a *outboxes) hold(o *outbox, n int) {
	for _, c := range a.count(o, n) {
		a.overflow.Add(1)
		a.close(c)
	}
}

// count returns the connections that have to go.
func (a *outboxes) count(o *outbox, n int) (out []net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case o.cut:
		return nil
	case n == 0:
		a.removeLocked(o)
		return nil
	case o.place == nil:
		o.place = a.queue.PushBack(o)
	case n < o.held:
		a.queue.MoveToBack(o.place)
	}
	a.bytes += int64(n - o.held)
	o.held = n
	for a.bytes > a.limit && a.queue.Len() > 1 { // one message may be larger than the bound
		x := a.queue.Front().Value.(*outbox)
		a.removeLocked(x)
		x.cut = true
		out = append(out, x.conn)
	}
	return out
}

// took notes that the client has taken some of what waits in o.
func (a *outboxes) took(o *outbox) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.place != nil {
		a.queue.MoveToBack(o.place)
	}
}

func (a *outboxes) removeLocked(o *outbox) {
	if o.place != nil {
		a.queue.Remove(o.place)
		a.bytes -= int64(o.held)
		o.place, o.held = nil, 0
	}
}

// waiting is how many bytes wait for all clients.
func (a *outboxes) waiting() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// longReply is a reply of so many bytes that not all clients may be given one at a time.
const longReply = 2 << 20

// reserve takes room for making a reply of n bytes. It reports false when there is none: as many as are made at a time
// are in memory before the first can be sent, or cut off.
func (a *outboxes) reserve(n int) bool {
	if n <= longReply {
		return true
	}
	if sum := a.building.Add(int64(n)); sum > a.limit && sum > int64(n) {
		a.building.Add(-int64(n))
		return false
	}
	return true
}

// release ends what reserve has begun.
func (a *outboxes) release(n int) {
	if n > longReply {
		a.building.Add(-int64(n))
	}
}
