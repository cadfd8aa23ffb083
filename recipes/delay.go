package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// WithLockDelay keeps others from the grant for a time after its holder was lost: its session has expired, or was
// closed, without Release. What the holder had sent, or does until it learns of the loss, has that long to end
// (Chubby's and Consul's lock-delay). A release ends it at once. It is for Mutex and Election, and at most an hour.
//
// The holder leaves a znode beside the waiters, lock-delay, which costs a transaction for each grant; a release deletes
// both. All waiters of this package and of zk-lite's HTTP API respect it, also those without the option; Curator and
// kazoo do not. The delay counts from when the next waiter sees the loss. Deleting that znode ends it.
func WithLockDelay(d time.Duration) Option {
	return func(o *options) { o.delay = &d }
}

// DelayError reports that a grant was not to be had because of a lock delay. It is an ErrNotAcquired.
type DelayError struct {
	Holder string        // the name of the znode of the holder that was lost
	Delay  time.Duration // after the loss
	Left   time.Duration // of that, when it was last looked
}

// Error names the holder that was lost, and says how much of its delay is left.
func (e *DelayError) Error() string {
	left := e.Left.Round(time.Millisecond)
	return fmt.Sprintf("a lock delay of %v after the loss of %s ends in %v", e.Delay, e.Holder, left)
}

// Unwrap returns ErrNotAcquired.
func (e *DelayError) Unwrap() error { return ErrNotAcquired }

// checkDelay reports ErrBadArguments.
func (q *waitQueue) checkDelay() error {
	if q.delay == nil {
		return nil
	}
	if err := curator.CheckDelay(*q.delay); err != nil {
		return fmt.Errorf("%s: %w: %w", q.dir, client.ErrBadArguments, err)
	}
	return nil
}

// mark is the path of the znode with a lock delay.
func (q *waitQueue) mark() string { return znode.Join(q.dir, curator.DelayName) }

// takeOver makes a position whose turn has come the holder: it waits until the delay after a lost holder has passed,
// and then leaves a mark of its own if it has a delay, or none. There is one first in the queue, and only that one
// writes, in transactions which check that it is still there. marked is whether the list of the queue has a mark.
func (p *position) takeOver(ctx context.Context, wait, marked bool) error {
	var seen time.Time // when this waiter first saw the loss
	for {
		var found *foundMark
		var err error
		if marked {
			if found, err = p.readMark(ctx); err != nil {
				return err
			}
		}
		switch {
		case found == nil && p.queue.delay == nil:
			return nil
		case found == nil:
			if err = p.replaceMark(ctx, false, p.ownMark()); err == nil {
				p.marked = true
				return nil
			}
		case found.Holder == p.name: // its answer was lost
			p.marked = true
			return nil
		case !found.Lost:
			lost := found.DelayMark
			lost.Lost = true
			err = p.replaceMark(ctx, true, lost.Bytes())
		default:
			if seen.IsZero() {
				seen = time.Now()
			}
			left := found.Remaining(found.ctime, p.ctimeAfter(found)) - time.Since(seen)
			if left <= 0 {
				if err = p.replaceMark(ctx, true, p.ownMark()); err == nil {
					p.marked = p.queue.delay != nil
					return nil
				}
				break
			}
			if !wait {
				return &DelayError{found.Holder, found.Delay, left}
			}
			if err = p.pause(ctx, left); err != nil && ctx.Err() != nil {
				err = errors.Join(err, &DelayError{found.Holder, found.Delay, left})
			}
		}
		if err != nil && !errors.Is(err, errLookAgain) {
			return err
		}
		marked = true
	}
}

// errLookAgain reports that it is not known what the mark is now.
var errLookAgain = errors.New("the mark has changed, or its change was not answered")

// foundMark is a mark that is there.
type foundMark struct {
	curator.DelayMark
	ctime int64
	czxid client.Zxid
}

// readMark reads the mark, nil if there is none.
func (p *position) readMark(ctx context.Context) (*foundMark, error) {
	data, stat, err := p.queue.c.Get(ctx, p.queue.mark())
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := curator.ParseDelayMark(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", p.queue.mark(), client.ErrMarshalling, err)
	}
	return &foundMark{m, stat.Ctime, stat.Czxid}, nil
}

// ctimeAfter is when the position was created, if that was after the mark; else the mark's own time. It is by the
// leaders' clock: the time between two of its stamps has passed, but what this client sees of it.
func (p *position) ctimeAfter(m *foundMark) int64 {
	if p.token > m.czxid {
		return p.ctime
	}
	return m.ctime
}

// ownMark is the position's mark, nil if there is no delay.
func (p *position) ownMark() []byte {
	if p.queue.delay == nil {
		return nil
	}
	return curator.DelayMark{Delay: *p.queue.delay, Holder: p.name}.Bytes()
}

// replaceMark writes a mark, or deletes it if data is nil, as long as the position exists. If the mark has changed
// meanwhile, or the answer is lost, it does nothing: look again.
func (p *position) replaceMark(ctx context.Context, there bool, data []byte) error {
	m := p.queue.c.Multi()
	m.Check(p.path, client.AnyVersion)
	if there {
		m.Delete(p.queue.mark(), client.AnyVersion)
	}
	if data != nil {
		m.Create(p.queue.mark(), data, client.Persistent, client.ReadACL()...)
	}
	err := m.Commit(ctx)
	var failed *client.MultiError
	switch again := []error{client.ErrNoNode, client.ErrNodeExists, client.ErrConnectionLoss}; {
	case errors.As(err, &failed) && failed.Index == 0 && errors.Is(err, client.ErrNoNode):
		return errPositionLost
	case ctx.Err() == nil && (isUnknown(err) ||
		slices.ContainsFunc(again, func(e error) bool { return errors.Is(err, e) })):
		return errLookAgain
	}
	return err
}

// pause waits until a time has passed, the mark has changed, or the position is lost.
func (p *position) pause(ctx context.Context, d time.Duration) error {
	_, _, w, err := p.queue.c.GetW(ctx, p.queue.mark())
	if errors.Is(err, client.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if _, err = p.waitEvent(short, w); short.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// removeGrant deletes the position together with its mark.
func (p *position) removeGrant(ctx context.Context) error {
	for p.marked {
		m := p.queue.c.Multi()
		m.Delete(p.path, client.AnyVersion)
		m.Delete(p.queue.mark(), client.AnyVersion)
		err := m.Commit(ctx)
		var failed *client.MultiError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &failed) && errors.Is(err, client.ErrNoNode):
			if failed.Index == 0 {
				return nil // by a transaction before, whose answer was lost, or with its session
			}
			p.marked = false // someone has deleted it
		case !isUnknown(err) || ctx.Err() != nil:
			return err
		}
	}
	return remove(ctx, p.queue.c, p.path)
}
