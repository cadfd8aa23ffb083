package zk

import (
	"container/list"
	"net"
	"sync"
	"sync/atomic"
)

// shares bounds the bytes that all connections hold together: what they have sent of a request and is not complete, or
// what waits to be sent to them. When that is too much, the one goes that was first and has taken nothing since:
// a client that sends or reads without pause is done long before that. A single share may be larger than the bound.
type shares struct {
	limit int64
	close func(net.Conn) // is called for each connection that goes
	// spare keeps a connection whose own share grows, even if it is the first.
	spare  bool
	closed atomic.Int64 // connections

	mu    sync.Mutex // protects the fields below, and those of every share but conn
	bytes int64
	queue list.List // of *share; those that take something go to the back
}

// share is what one connection holds.
type share struct {
	conn  net.Conn
	place *list.Element // in the queue; nil: nothing is held
	held  int           // bytes
	cut   bool          // the connection is being closed
}

// hold sets a share to n bytes. Fewer than before, but some, means that the client has taken the others.
func (a *shares) hold(s *share, n int) {
	for _, c := range a.count(s, n) {
		a.closed.Add(1)
		a.close(c)
	}
}

// count returns the connections that have to go.
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

// took notes that the client has taken some of what it holds.
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

// sum is how many bytes are held.
func (a *shares) sum() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}
