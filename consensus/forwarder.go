package consensus

import (
	"errors"
	"sync"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// ErrStopped is returned by Propose once the server stops.
var ErrStopped = errors.New("server is stopping")

// forwarder holds this server's commands from Propose until their results have
// been applied here, and knows which of them the present leader was sent.
//
// Invariant: pending[i] has number first+i; first <= next <= first+len(pending).
type forwarder struct {
	maxCount, maxBytes int
	wake               chan struct{} // capacity 1: there may be something to send

	mu      sync.Mutex   // protects the fields below
	origin  state.Origin // changed by the applying goroutine only, which may look without mu
	room    *sync.Cond   // on mu: there is room again, or stopped
	pending []pending
	head    int    // pending[:head] are done and will be moved over
	first   uint64 // number of pending[head]
	next    uint64 // number of the first command not sent on the present link
	sent    uint64 // number of the first command never sent in this life
	bytes   int    // of pending
	flying  int    // of those in it that were sent on the present link
	waiting int    // how many wait for room
	chunk   []byte // where the next command is encoded
	stopped bool
}

type pending struct {
	command []byte // with its length in front (state.AppendCommand)
	waiter  Waiter
}

// chunkSize is how many bytes of commands share an allocation. A chunk lives
// until the last of its commands is done.
const chunkSize = 64 << 10

func newForwarder(o state.Origin, maxCount, maxBytes int) *forwarder {
	f := &forwarder{
		origin: o, maxCount: maxCount, maxBytes: maxBytes, first: 1, next: 1, sent: 1,
		wake: make(chan struct{}, 1),
	}
	f.room = sync.NewCond(&f.mu)
	return f
}

// own reports whether c is the ensemble's own command and no client's: there
// are at most as many as sessions and as the reaper takes at once, and the
// clock that proposes them must not stand still because clients ask for much.
func own(c *state.Command) bool {
	switch c.Op {
	case state.OpExpireSession, state.OpMember:
		return true
	case state.OpReap:
		return c.Session == 0 // a client may ask for it, too
	}
	return false
}

// add gives c the next number and keeps it. It blocks while too much is pending,
// unless c is the ensemble's own.
func (f *forwarder) add(c *state.Command, w Waiter) error {
	f.mu.Lock()
	for !f.stopped && !own(c) && (f.lenLocked() >= f.maxCount || f.bytes >= f.maxBytes) {
		f.waiting++
		f.room.Wait()
		f.waiting--
	}
	if f.stopped {
		f.mu.Unlock()
		return ErrStopped
	}
	command := f.encodeLocked(c)
	f.pending = append(f.pending, pending{command, w})
	f.bytes += len(command)
	f.mu.Unlock()
	f.signal()
	return nil
}

// encodeLocked appends c to the chunk, or to a new one if it may not fit.
func (f *forwarder) encodeLocked(c *state.Command) []byte {
	if need := roomFor(c); cap(f.chunk)-len(f.chunk) < need {
		f.chunk = make([]byte, 0, max(chunkSize, need))
	}
	start, room := len(f.chunk), cap(f.chunk)
	b := state.AppendCommand(f.chunk, c)
	if f.chunk = b; cap(b) != room || len(b) > chunkSize {
		// It has outgrown the chunk, or was larger than one: its array is not
		// written to again. Otherwise append would make every chunk a multiple of
		// the last, and one array would hold a hundred megabytes.
		f.chunk = nil
	}
	return b[start:len(b):len(b)]
}

// roomFor is about how long a command's encoding is, rather more than less.
func roomFor(c *state.Command) int {
	const numbers, identity, entry = 256, 64, 64
	n := numbers + len(c.Path) + len(c.Data) + identity*len(c.Identities) + entry*len(c.ACL)
	for i := range c.Ops {
		op := &c.Ops[i]
		n += entry + len(op.Path) + len(op.Data) + entry*len(op.ACL)
	}
	return n
}

func (f *forwarder) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *forwarder) lenLocked() int { return len(f.pending) - f.head }

// take returns the next commands to send, at most one group's worth, appended
// to b, and signals if there are more. A Count of 0 means that everything has been
// sent, or as much as may be under way: then applied signals.
func (f *forwarder) take(b []byte) state.Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := state.Batch{Origin: f.origin, First: f.next, Commands: b}
	if f.flying >= maxSentBytes {
		return g
	}
	for i := f.head + int(f.next-f.first); i < len(f.pending); i++ {
		command := f.pending[i].command
		if g.Count > 0 && (g.Count == maxGroupCommands || len(g.Commands)+len(command) > maxGroupBytes) {
			f.signal()
			break
		}
		g.Commands = append(g.Commands, command...)
		g.Count++
		f.flying += len(command)
	}
	f.next += uint64(g.Count)
	f.sent = max(f.sent, f.next)
	return g
}

// life is the origin of this server's commands.
func (f *forwarder) life() state.Origin {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.origin
}

// renumber begins a new life: the log knows one that is later than ours, and
// drops all that we send. Nothing pending has had an effect, so everything is
// numbered anew.
func (f *forwarder) renumber(incarnation uint64) {
	f.mu.Lock()
	f.origin.Incarnation = incarnation
	f.first, f.next, f.sent, f.flying = 1, 1, 1, 0
	f.mu.Unlock()
	f.signal()
}

// rewind has everything without a result sent again: on a new link, or after
// the state machine has missed a number.
func (f *forwarder) rewind() {
	f.mu.Lock()
	f.next, f.flying = f.first, 0
	f.mu.Unlock()
	f.signal()
}

// applied takes the waiter of a command that has its result. ok is false for a
// number that is not the oldest pending one, or was not sent yet, which only a
// replay of the log can bring.
func (f *forwarder) applied(seq uint64) (w Waiter, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lenLocked() == 0 || seq != f.first || seq >= f.sent {
		return nil, false
	}
	return f.popLocked(), true
}

func (f *forwarder) popLocked() Waiter {
	p := &f.pending[f.head]
	w := p.waiter
	f.bytes -= len(p.command)
	if f.first < f.next {
		if f.flying >= maxSentBytes {
			f.signal()
		}
		f.flying -= len(p.command)
	}
	*p = pending{}
	f.head++
	f.first++
	f.next = max(f.next, f.first)
	switch {
	case f.head == len(f.pending):
		f.pending, f.head = f.pending[:0], 0
	case f.head >= 4096 && f.head*2 >= len(f.pending):
		n := copy(f.pending, f.pending[f.head:])
		clear(f.pending[n:])
		f.pending, f.head = f.pending[:n], 0
	}
	if f.waiting > 0 {
		f.room.Signal() // one: they come in the order in which they have waited
	}
	return w
}

// skipTo takes the waiters of all commands up to seq: a snapshot has replaced
// the entries with their results.
func (f *forwarder) skipTo(seq uint64) []Waiter {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lost []Waiter
	for f.lenLocked() > 0 && f.first <= seq {
		lost = append(lost, f.popLocked())
	}
	return lost
}

func (f *forwarder) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lenLocked()
}

// stop makes add fail from now on.
func (f *forwarder) stop() {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.room.Broadcast()
}
