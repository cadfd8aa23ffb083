package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fifo"
	"github.com/zk-lite/zk-lite/migration/learner"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	// maxBatch bounds the transactions of one command, in bytes, if there is more than one: as a part of a backup, so
	// that it shares entries of the log with other commands.
	maxBatch = 256 << 10
	// maxBatches is how many batches are in flight: enough to keep the log busy.
	maxBatches = 4
	// maxWaiting bounds what waits for the batches in flight, in bytes. What comes after that waits in the learner.
	maxWaiting = 4 * maxBatch
)

// feed brings what comes on one connection into the log. It implements learner.Handler.
type feed struct {
	ctx     context.Context // of the connection
	fail    context.CancelCauseFunc
	m       *Mirror
	term    uint64
	slots   chan struct{} // has one element per batch in flight
	carrier *carrier
	come    chan struct{} // has an element if something has come since send looked
	room    chan struct{} // has an element if something was taken since Transaction looked

	mu      sync.Mutex
	waiting fifo.Queue[item]
	bytes   int // of waiting
}

// item is what waits to be proposed.
type item struct {
	step state.MirrorStep // MirrorFollow, MirrorAnswer or MirrorOnline
	raw  []byte           // a transaction, or answers to relays
	time int64            // of a transaction, by the origin's leader, milliseconds since the epoch
}

func newFeed(ctx context.Context, fail context.CancelCauseFunc, m *Mirror, term uint64, l Learner) *feed {
	f := &feed{
		ctx: ctx, fail: fail, m: m, term: term, slots: make(chan struct{}, maxBatches),
		come: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	f.carrier = newCarrier(f, l)
	return f
}

// Leader implements learner.Handler.
func (f *feed) Leader(l learner.Leader) error {
	f.m.epoch = max(f.m.epoch, l.Epoch)
	f.m.connected(&l, f.term)
	f.carrier.old = l.Config == ""
	f.m.sent = true
	close(f.carrier.ready)
	return context.Cause(f.ctx)
}

// Snapshot implements learner.Handler. It comes before the transactions.
func (f *feed) Snapshot(r *replica.Replica) error { return f.load(r) }

// Revalidated implements learner.Handler.
func (f *feed) Revalidated(session znode.SessionID, valid bool) error {
	return f.carrier.revalidated(session, valid)
}

// Synced implements learner.Handler.
func (f *feed) Synced() error { return f.carrier.synced() }

// notify puts an element into a channel that has room for one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Transaction implements learner.Handler. raw belongs to f from now on.
func (f *feed) Transaction(raw []byte, t *replica.Txn) error {
	if t.Op == replica.OpReconfig {
		f.m.reconfigured(string(t.Data))
	}
	return f.enqueue(item{state.MirrorFollow, raw, t.Time})
}

// enqueue has an item proposed behind those before it.
func (f *feed) enqueue(x item) error {
	for !f.put(x) {
		select {
		case <-f.room:
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		}
	}
	notify(f.come)
	return nil
}

func (f *feed) put(x item) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes > 0 && f.bytes+len(x.raw) > maxWaiting {
		return false
	}
	f.waiting.Push(x)
	f.bytes += len(x.raw)
	return true
}

// send proposes what comes until the connection ends.
func (f *feed) send() {
	for {
		select {
		case f.slots <- struct{}{}: // meanwhile more comes, for one batch
		case <-f.ctx.Done():
			return
		}
		b := f.takeBatch()
		for b == nil {
			select {
			case <-f.come:
				b = f.takeBatch()
			case <-f.ctx.Done():
				return
			}
		}
		if err := f.propose(b); err != nil {
			f.fail(err)
			return
		}
	}
}

// takeBatch takes the next items of one kind; nil if none wait.
func (f *feed) takeBatch() *batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting.Len() == 0 {
		return nil
	}
	b := &batch{feed: f, step: f.waiting.At(0).step}
	for f.waiting.Len() > 0 {
		x := f.waiting.At(0)
		if x.step != b.step || len(b.raw) > 0 && len(b.raw)+len(x.raw) > maxBatch {
			break
		}
		f.waiting.Pop()
		f.bytes -= len(x.raw)
		if x.step == state.MirrorFollow {
			b.raw, b.times = state.AppendTxn(b.raw, x.raw), append(b.times, x.time)
		} else {
			b.raw = append(b.raw, x.raw...)
		}
	}
	notify(f.room)
	return b
}

func (f *feed) propose(b *batch) error {
	c := &state.Command{Op: state.OpMirror, Mirror: b.step, Term: f.term, Data: b.raw}
	b.raw = nil
	return f.m.log.Propose(c, b)
}

// batch is items in one command. It implements forward.Waiter.
type batch struct {
	feed  *feed
	step  state.MirrorStep
	raw   []byte
	times []int64 // of transactions
}

// Applied implements forward.Waiter.
func (b *batch) Applied(r *state.Result) {
	<-b.feed.slots
	if err := errorOf(r.Code); err != nil {
		b.feed.fail(err)
		return
	}
	if len(b.times) > 0 {
		b.feed.m.applied(b.times, time.Now())
	}
}

// Lost implements forward.Waiter.
func (b *batch) Lost() {
	<-b.feed.slots
	b.feed.fail(errors.New("the result of a batch is not known here"))
}

// The reasons for which a Mirror stops until the operator begins again.
var (
	// ErrDiffers means that the digests of the origin's leader are not ours, and did not become so again.
	ErrDiffers = errors.New("the origin's znodes are not ours")
	// ErrNoRoom means that the servers have no room for the origin's tree.
	ErrNoRoom = errors.New("the servers have no room for the origin's tree: give all of them more memory, or raise " +
		"limits.treeBytes")
	// ErrUnreadable means that the state machine cannot decode what has come.
	ErrUnreadable = errors.New("this release cannot read what the origin has sent")
)

// errLost means that the state is no longer a copy of the origin, or that not the next transaction has come.
var errLost = errors.New("a transaction did not fit the state")

// errorOf translates the codes of the steps of a mirror.
func errorOf(code znode.Error) error {
	switch code {
	case znode.OK:
		return nil
	case znode.ErrSessionMoved:
		return errDeposed
	case znode.ErrNoNode:
		return errEnded
	case znode.ErrSystem: // of server.Propose
		return ErrNoRoom
	case znode.ErrDataInconsistency:
		return errLost
	case znode.ErrMarshalling: // unless state.Mirror.LostAt says that it has not fitted
		return ErrUnreadable
	}
	return fmt.Errorf("the log has refused a step of the mirror: %w", code)
}
