package recipes

import (
	"context"
	"errors"
	"iter"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// Election makes one of its candidates the leader. Each candidate watches only the
// one before it, so that the death of a leader wakes one and not all.
//
// Its znodes are those of Curator's LeaderLatch: path/_c_<guid>-latch-<number>. A
// candidate of kazoo's Election is seen, and sees these if its lock is made with
// extra_lock_patterns=["-latch-"].
type Election struct {
	queue  *waitQueue
	strict bool
}

// NewElection returns the election at path. WithData identifies the candidate
// (Curator's id). Options: WithData, WithACL, WithLossOnSuspension,
// WithLockDelay.
func NewElection(c *client.Client, path string, opts ...Option) *Election {
	o := newOptions(opts)
	return &Election{
		queue: &waitQueue{
			c: c, dir: path, base: curator.Latch, markers: []string{curator.Latch, curator.KazooLock},
			data: o.data, acl: o.acl, delay: o.delay,
		},
		strict: o.strict,
	}
}

// Term is the time for which a candidate leads. Its token grows from leader to
// leader.
type Term struct{ *Grant }

// Campaign waits until this candidate leads, or ctx ends. If the session is lost
// while waiting, it queues again in the next.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	p, err := e.queue.acquire(ctx, true)
	if err != nil {
		return nil, err
	}
	return &Term{newGrant(p, e.strict)}, nil
}

// Resign ends the term, so that the next candidate leads; see Grant.Release.
func (t *Term) Resign(ctx context.Context) error { return t.Release(ctx) }

// Announce replaces the data that observers see of the leader.
func (t *Term) Announce(ctx context.Context, data []byte) error {
	ctx, cancel := t.Context(ctx)
	defer cancel()
	for {
		_, err := t.hold.position.queue.c.Set(ctx, t.Path(), data, client.AnyVersion)
		if !errors.Is(err, client.ErrOutcomeUnknown) || ctx.Err() != nil {
			return err
		}
	}
}

// Run campaigns, and calls lead while elected; the context of lead is cancelled
// when the term is lost. After a loss Run campaigns again once lead has returned;
// otherwise Run resigns and returns the error of lead.
//
// When the context of lead has ended, Term.Err tells why: after a loss it is an error
// (ErrLost), and it is nil if ctx, the caller's own, has ended.
func (e *Election) Run(ctx context.Context, lead func(context.Context, *Term) error) error {
	for {
		term, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		bound, cancel := term.Context(ctx)
		err = lead(bound, term)
		cancel()
		if cause := term.Err(); cause != nil && errors.Is(cause, ErrLost) && ctx.Err() == nil {
			_ = term.Resign(ctx) // ErrLost again
			continue
		}
		return errors.Join(err, term.Resign(ctx))
	}
}

// Candidates returns the leader, followed by the other candidates in their
// order.
func (e *Election) Candidates(ctx context.Context) ([]Participant, error) {
	return e.queue.participants(ctx)
}

// Leader returns the elected candidate, which may not know yet that it leads, or may
// already have lost its session.
//
// Errors: ErrNoLeader.
func (e *Election) Leader(ctx context.Context) (Participant, error) {
	leader, ok, err := e.queue.first(ctx)
	if err == nil && !ok {
		err = ErrNoLeader
	}
	return leader, err
}

// Observe yields the leader, and again whenever it or its data has changed; the
// zero Participant if there is none. The last item is an error, that of ctx if
// nothing else fails. It may skip leaders that led briefly.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Participant, error] {
	return func(yield func(Participant, error) bool) {
		first := true
		var last Participant
		var seen client.Version
		for {
			now, version, w, err := e.observe(ctx)
			if err != nil {
				if startAgain(ctx, e.queue.c, err) {
					continue
				}
				yield(Participant{}, err)
				return
			}
			if first || now.Path != last.Path || version != seen {
				first, last, seen = false, now, version
				if !yield(now, nil) {
					w.Cancel()
					return
				}
			}
			select {
			case <-w.C():
			case <-ctx.Done():
				w.Cancel()
			}
		}
	}
}

// observe reads who leads, and sets a watch that fires when this changes: on
// the leader's znode, on the parent's children if there is no leader, on the
// parent if there is none.
func (e *Election) observe(
	ctx context.Context,
) (Participant, client.Version, *client.Watch, error) {
	c, dir := e.queue.c, e.queue.dir
	for {
		names, _, err := c.Children(ctx, dir)
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			return Participant{}, 0, nil, err
		}
		waiting := curator.Order(names, e.queue.markers...)
		if len(waiting) > 0 {
			path := znode.Join(dir, waiting[0].Name)
			data, stat, w, err := c.GetW(ctx, path)
			if errors.Is(err, client.ErrNoNode) {
				continue // its successor is in the next list
			}
			return Participant{path, data, int64(stat.Czxid), stat.EphemeralOwner}, stat.Version, w, err
		}
		w, err := e.watchEmpty(ctx)
		if w != nil || err != nil {
			return Participant{}, 0, w, err
		}
	}
}

// watchEmpty sets a watch for the first candidate. It returns no watch if a
// candidate has appeared.
func (e *Election) watchEmpty(ctx context.Context) (*client.Watch, error) {
	names, _, w, err := e.queue.c.ChildrenW(ctx, e.queue.dir)
	if errors.Is(err, client.ErrNoNode) {
		var exists bool
		exists, _, w, err = e.queue.c.ExistsW(ctx, e.queue.dir)
		if err == nil && exists {
			w.Cancel()
			return nil, nil
		}
		return w, err
	}
	if err == nil && len(curator.Order(names, e.queue.markers...)) > 0 {
		w.Cancel()
		return nil, nil
	}
	return w, err
}
