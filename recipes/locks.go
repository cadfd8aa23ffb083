package recipes

import (
	"context"
	"errors"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
)

// Mutex is a lock that one client at a time has, in the order in which they asked
// for it. A Mutex can be used by any number of goroutines; each Lock is one of its
// own.
//
// Its znodes are those of Curator's InterProcessMutex:
// path/_c_<guid>-lock-<number>. A kazoo lock sees them if it is made with
// extra_lock_patterns=["-lock-"].
type Mutex struct {
	queue     *waitQueue
	strict    bool
	reentrant bool
}

// NewMutex returns the mutex at path.
// Options: WithData, WithACL, WithLossOnSuspension, WithReentrance.
func NewMutex(c *client.Client, path string, opts ...Option) *Mutex {
	o := newOptions(opts)
	return &Mutex{
		queue: &waitQueue{
			c: c, dir: path, base: curator.Lock, markers: []string{curator.Lock, curator.KazooLock},
			data: o.data, acl: o.acl, blocker: lastOf,
		},
		strict: o.strict, reentrant: o.reentrant,
	}
}

// Lock waits until the mutex is granted, or ctx ends. If the session is lost
// while waiting, it queues again in the next.
func (m *Mutex) Lock(ctx context.Context) (*Grant, error) { return m.lock(ctx, true) }

// TryLock is Lock without waiting for others. If another client has the mutex, the error
// is ErrNotAcquired.
func (m *Mutex) TryLock(ctx context.Context) (*Grant, error) { return m.lock(ctx, false) }

func (m *Mutex) lock(ctx context.Context, wait bool) (*Grant, error) {
	if m.reentrant {
		if h, ok := ctx.Value(holdKey{m.queue}).(*hold); ok {
			if g, ok := h.again(); ok {
				return g, nil
			}
		}
	}
	p, err := m.queue.acquire(ctx, wait)
	if err != nil {
		return nil, err
	}
	return newGrant(p, m.strict), nil
}

// Participants returns the holder, if there is one, and behind it those who wait,
// in their order.
func (m *Mutex) Participants(ctx context.Context) ([]Participant, error) {
	return m.queue.participants(ctx)
}

// Revoke asks the holder to release the mutex, by data in its znode that
// Grant.Revoked and Curator's Revocable react to. It does not wait for it.
//
// Errors: ErrNotHeld.
func (m *Mutex) Revoke(ctx context.Context) error {
	holder, ok, err := m.queue.first(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return ErrNotHeld
	}
	return revoke(ctx, m.queue.c, holder.Path)
}

func revoke(ctx context.Context, c *client.Client, path string) error {
	for {
		_, err := c.Set(ctx, path, []byte(revokeMessage), client.AnyVersion)
		switch {
		case err == nil || errors.Is(err, client.ErrNoNode):
			return nil // it is asked, or has gone since
		case !errors.Is(err, client.ErrOutcomeUnknown) || ctx.Err() != nil:
			return err
		}
	}
}
