package forward

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fair"
	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/znode"
)

// Errors of Add.
var (
	ErrStopped = errors.New("server is stopping")
	ErrOverdue = errors.New("the command has waited for longer than the session's timeout, because too much is pending")
)

// Waiter receives the outcome of a proposed command. Both methods are called
// between BeginApply and EndApply, in the order of the proposals, and must not
// block.
type Waiter interface {
	// Applied delivers the result, which is valid during the call only.
	Applied(r *state.Result)
	// Lost reports that the result will never be known here, because the state was
	// replaced by a snapshot that contains the command.
	Lost()
}

// Queue holds this server's commands from Add until their results have been applied here, and which of
// them were sent to the present leader.
//
// Invariant: pending[i] has number first+i; first <= next <= first+len(pending).
type Queue struct {
	maxCount, maxBytes int
	start              time.Time
	wake               chan struct{}       // capacity 1: there may be something to send
	Waits              histogram.Histogram // from Add until commands are first sent
	bytes              atomic.Int64        // of pending; written under mu

	mu       sync.Mutex   // protects the fields below
	origin   state.Origin // changed by the applying goroutine only, which may read it without mu
	pending  []pending
	waiting  fair.Order    // of those who wait for room
	granted  fair.Holding  // what they have got, and not used yet
	server   fair.Group    // of those who propose for no client
	head     int           // pending[:head] are done and will be moved over
	first    uint64        // number of pending[head]
	next     uint64        // number of the first command not sent on the present stream
	sent     uint64        // number of the first command never sent in this incarnation
	inFlight int           // of those in it that were sent on the present stream
	chunk    []byte        // where the next command is encoded
	applied  time.Duration // sent of the command that was popped last
	stopped  bool
	stopping chan struct{} // closed once stopped
}

type pending struct {
	command     []byte // with its length in front (state.AppendCommand)
	waiter      Waiter
	from        *fair.Group   // whose share it is of; nil: no one's
	added, sent time.Duration // since Queue.start; sent is that of the last time
}

// Limits for commands in flight. They exceed what the disk can write during one round trip, and stay far
// below raft's trailing logs (entries in flight beyond those can never be replicated again).
const (
	maxBatchCommands = 1024 // commands sent at once
	maxBatchBytes    = 256 << 10
	// What a server sends beyond that is not applied here yet, or the leader's next entries would
	// never be full; and no more, because touches travel behind it.
	maxSentBytes = 2 << 20
)

// chunkSize is how many bytes of commands share an allocation. A chunk lives
// until the last of its commands is done.
const chunkSize = 64 << 10

// NewQueue returns an empty queue for at most so many commands and bytes.
func NewQueue(o state.Origin, maxCount, maxBytes int) *Queue {
	q := &Queue{
		origin: o, maxCount: maxCount, maxBytes: maxBytes, first: 1, next: 1, sent: 1,
		wake: make(chan struct{}, 1), start: time.Now(), stopping: make(chan struct{}),
	}
	return q
}

// isUrgent reports whether c does not wait for room: the ensemble's own commands, of which there are at most as many as
// sessions and as the reaper takes at once, and whose proposer must not wait because clients ask for much; and the end
// or the return of a session, of which each connection sends one.
func isUrgent(c *state.Command) bool {
	switch c.Op {
	case state.OpExpireSession, state.OpCloseSession, state.OpAttach, state.OpMember, state.OpDigest:
		return true
	case state.OpReap:
		return c.Session == 0 // a client may ask for it, too
	case state.OpReconfig:
		return c.Reconfig.Step != state.ReconfigStart
	}
	return false
}

// Add gives c the next number and keeps it. It blocks while too much is pending, of all or of the client, unless c is
// urgent; of those who wait, the one that has used least is first. An error means that the command was not and will not
// be sent: ErrStopped or ErrOverdue.
func (q *Queue) Add(c *state.Command, w Waiter, from From) error {
	q.mu.Lock()
	m := from.Member
	if m == nil {
		m = new(fair.Member)
		m.Join(&q.server)
	}
	group := m.Group()
	if isUrgent(c) {
		group = nil
	} else if !q.stopped && (!q.hasRoomLocked() || q.holdsShareLocked(group)) {
		m.Size = c.MaxSize()
		if err := q.waitLocked(m, from.Patience); err != nil {
			q.mu.Unlock()
			return err
		}
	}
	if q.stopped {
		q.mu.Unlock()
		return ErrStopped
	}
	command := q.encodeLocked(c)
	q.pending = append(q.pending, pending{command: command, waiter: w, from: group, added: time.Since(q.start)})
	q.bytes.Add(int64(len(command)))
	q.holdLocked(group, 1, len(command))
	q.mu.Unlock()
	q.signal()
	return nil
}

// encodeLocked appends c to the chunk, or to a new one if it may not fit.
func (q *Queue) encodeLocked(c *state.Command) []byte {
	if need := c.MaxSize(); cap(q.chunk)-len(q.chunk) < need {
		q.chunk = make([]byte, 0, max(chunkSize, need))
	}
	start, room := len(q.chunk), cap(q.chunk)
	b := state.AppendCommand(q.chunk, c)
	if q.chunk = b; cap(b) != room || len(b) > chunkSize {
		// It has outgrown the chunk, or was larger than one: its array is not
		// written to again. Otherwise append would make every chunk a multiple of
		// the last, and one array would hold a hundred megabytes.
		q.chunk = nil
	}
	return b[start:len(b):len(b)]
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) lenLocked() int { return len(q.pending) - q.head }

// take returns the next commands to send, at most one batch, appended
// to b, and signals if there are more. A Count of 0 means that everything has been
// sent, or as much as may be in flight: then Applied signals.
func (q *Queue) take(b []byte) state.Batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	g := state.Batch{Origin: q.origin, First: q.next, Commands: b}
	if q.inFlight >= maxSentBytes {
		return g
	}
	now := time.Since(q.start)
	for i := q.head + int(q.next-q.first); i < len(q.pending); i++ {
		p := &q.pending[i]
		command := p.command
		if g.Count > 0 && (g.Count == maxBatchCommands || len(g.Commands)+len(command) > maxBatchBytes) {
			q.signal()
			break
		}
		if p.sent = now; q.next+uint64(g.Count) >= q.sent {
			q.Waits.Observe(now - p.added)
		}
		g.Commands = append(g.Commands, command...)
		g.Count++
		q.inFlight += len(command)
	}
	q.next += uint64(g.Count)
	q.sent = max(q.sent, q.next)
	return g
}

// OriginApplying is Origin for the applying goroutine, which alone changes it.
func (q *Queue) OriginApplying() state.Origin { return q.origin }

// SentApplying is, for the applying goroutine, when the command whose waiter Applied has just returned was last sent.
func (q *Queue) SentApplying() time.Time { return q.start.Add(q.applied) }

// Origin returns the origin of this server's commands.
func (q *Queue) Origin() state.Origin {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.origin
}

// Renumber begins a new incarnation: the log contains one that is later than ours, and
// drops all that we send. Nothing pending has had an effect, so everything is
// numbered again. Only the applying goroutine may call it.
func (q *Queue) Renumber(incarnation uint64) {
	q.mu.Lock()
	q.origin.Incarnation = incarnation
	q.first, q.next, q.sent, q.inFlight = 1, 1, 1, 0
	q.mu.Unlock()
	q.signal()
}

// Rewind has everything without a result sent again: on a new stream, or after
// the state machine has missed a number.
func (q *Queue) Rewind() {
	q.mu.Lock()
	q.next, q.inFlight = q.first, 0
	q.mu.Unlock()
	q.signal()
}

// Applied removes and returns the waiter of a command that has its result. ok is false for a
// number that is not the oldest pending one, or was not sent yet, which only a
// replay of the log can bring.
func (q *Queue) Applied(seq uint64) (w Waiter, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lenLocked() == 0 || seq != q.first || seq >= q.sent {
		return nil, false
	}
	return q.popLocked(), true
}

func (q *Queue) popLocked() Waiter {
	p := &q.pending[q.head]
	w := p.waiter
	q.applied = p.sent
	q.bytes.Add(-int64(len(p.command)))
	q.holdLocked(p.from, -1, -len(p.command))
	if q.first < q.next {
		if q.inFlight >= maxSentBytes {
			q.signal()
		}
		q.inFlight -= len(p.command)
	}
	*p = pending{}
	q.head++
	q.first++
	q.next = max(q.next, q.first)
	switch {
	case q.head == len(q.pending):
		q.pending, q.head = q.pending[:0], 0
	case q.head >= 4096 && q.head*2 >= len(q.pending):
		n := copy(q.pending, q.pending[q.head:])
		clear(q.pending[n:])
		q.pending, q.head = q.pending[:n], 0
	}
	q.grantLocked()
	return w
}

// SkipTo removes and returns the waiters of all commands up to seq: a snapshot has replaced
// the entries with their results.
func (q *Queue) SkipTo(seq uint64) []Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	var lost []Waiter
	for q.lenLocked() > 0 && q.first <= seq {
		lost = append(lost, q.popLocked())
	}
	return lost
}

// Len returns how many commands have no result yet.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lenLocked()
}

// Bytes returns how many bytes the commands have that have no result yet.
func (q *Queue) Bytes() int64 { return q.bytes.Load() }

// Stop makes Add fail from now on.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.stopped {
		q.stopped = true
		close(q.stopping)
	}
}

// Do adds a command and waits for its result. After ctx's error or ErrStopped the outcome is unknown.
func (q *Queue) Do(ctx context.Context, c *state.Command) (znode.Error, error) {
	w := &commitment{done: make(chan struct{})}
	if err := q.Add(c, w, From{}); err != nil {
		return 0, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped { // all waiters are Lost then
		return 0, fmt.Errorf("%w; whether it has happened is unknown", ErrStopped)
	}
	return w.code, nil
}

// commitment waits for a command's result.
type commitment struct {
	code znode.Error
	done chan struct{}
}

func (c *commitment) Applied(r *state.Result) {
	c.code = r.Code
	close(c.done)
}

// Lost implements Waiter: the command is in the state, unless the server is being closed.
func (c *commitment) Lost() { close(c.done) }
