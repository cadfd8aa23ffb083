package recipes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// Mutex is a lock that one client at a time holds, in the order of their requests.
// Any number of goroutines can use a Mutex; each Lock queues by itself.
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
// Options: WithData, WithACL, WithLossOnSuspension, WithReentrance, WithLockDelay.
func NewMutex(c *client.Client, path string, opts ...Option) *Mutex {
	o := newOptions(opts)
	return &Mutex{
		queue: &waitQueue{
			c: c, dir: path, base: curator.Lock, markers: []string{curator.Lock, curator.KazooLock},
			data: o.data, acl: o.acl, delay: o.delay,
		},
		strict: o.strict, reentrant: o.reentrant,
	}
}

// Lock waits until the mutex is granted, or ctx ends. If the session is lost
// while waiting, it queues again in the next.
func (m *Mutex) Lock(ctx context.Context) (*Grant, error) { return m.lock(ctx, true) }

// TryLock is Lock without waiting for others. If another client holds the mutex, the
// error is ErrNotAcquired.
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

// Participants returns the holder, if there is one, followed by the waiters in
// their order.
func (m *Mutex) Participants(ctx context.Context) ([]Participant, error) {
	return m.queue.participants(ctx)
}

// Revoke asks the holder to release the mutex, by setting data in its znode
// that Grant.Revoked and Curator's Revocable react to. It does not wait for the
// release.
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
			return nil // it was asked, or has released the lock
		case !errors.Is(err, client.ErrOutcomeUnknown) || ctx.Err() != nil:
			return err
		}
	}
}

// RWMutex is a lock that one writer or any number of readers hold. It is fair: a
// reader does not overtake a writer that asked before it. A reader waits for the
// last writer ahead of it, a writer for the last of all.
//
// Its znodes are those of Curator's InterProcessReadWriteLock:
// path/_c_<guid>-__READ__<number> and path/_c_<guid>-__WRIT__<number>.
type RWMutex struct {
	read, write *waitQueue
	strict      bool
}

// NewRWMutex returns the read/write lock at path.
// Options: WithData, WithACL, WithLossOnSuspension.
func NewRWMutex(c *client.Client, path string, opts ...Option) *RWMutex {
	o := newOptions(opts)
	markers := []string{curator.ReadLock, curator.WriteLock}
	return &RWMutex{
		read: &waitQueue{c: c, dir: path, base: curator.ReadLock, markers: markers,
			data: o.data, acl: o.acl, waitsFor: []string{curator.WriteLock}},
		write: &waitQueue{c: c, dir: path, base: curator.WriteLock, markers: markers,
			data: o.data, acl: o.acl},
		strict: o.strict,
	}
}

// Lock waits until the lock is granted for writing, or ctx ends.
func (m *RWMutex) Lock(ctx context.Context) (*Grant, error) { return m.lock(ctx, m.write, true) }

// RLock waits until the lock is granted for reading, or ctx ends.
func (m *RWMutex) RLock(ctx context.Context) (*Grant, error) { return m.lock(ctx, m.read, true) }

// TryLock is Lock without waiting: ErrNotAcquired if another client has the lock.
func (m *RWMutex) TryLock(ctx context.Context) (*Grant, error) { return m.lock(ctx, m.write, false) }

// TryRLock is RLock without waiting: ErrNotAcquired if a writer has the lock or
// waits for it.
func (m *RWMutex) TryRLock(ctx context.Context) (*Grant, error) { return m.lock(ctx, m.read, false) }

func (m *RWMutex) lock(ctx context.Context, q *waitQueue, wait bool) (*Grant, error) {
	p, err := q.acquire(ctx, wait)
	if err != nil {
		return nil, err
	}
	return newGrant(p, m.strict), nil
}

// Downgrade turns a grant for writing into one for reading, without a moment at
// which another writer can have the lock. On success the old grant is released;
// on an error it is as it was.
//
// As in Curator, the reader's znode gets the writer's number, and so its position.
func (m *RWMutex) Downgrade(ctx context.Context, g *Grant) (*Grant, error) {
	if g.hold.position.queue != m.write {
		return nil, fmt.Errorf("downgrading %s: %w for writing by this RWMutex", g.Path(), ErrNotHeld)
	}
	if err := g.Err(); err != nil {
		return nil, err
	}
	bound, cancel := g.Context(ctx)
	defer cancel()
	number := g.Path()[strings.LastIndex(g.Path(), curator.WriteLock)+len(curator.WriteLock):]
	path, stat, err := m.read.c.CreateProtected(bound,
		znode.Join(m.read.dir, curator.ReadLock+number), m.read.data, client.Ephemeral, m.read.acl...)
	if err != nil {
		return nil, err
	}
	p, err := m.read.positionOf(path, stat)
	if err != nil {
		return nil, lost(client.ErrSessionExpired)
	}
	p.token = g.hold.position.token // by the position in the queue: later grants have higher ones
	if err := p.watchOwn(bound); err != nil {
		p.quit(ctx)
		return nil, err
	}
	down := newGrant(p, m.strict)
	if err := g.Release(ctx); err != nil && p.session.Err() != nil {
		return nil, err
	}
	return down, nil
}

// Writers returns those who have the lock for writing or wait for it, in their
// order.
func (m *RWMutex) Writers(ctx context.Context) ([]Participant, error) {
	return m.write.participants(ctx, curator.WriteLock)
}

// Readers returns those who have the lock for reading or wait for it, in their
// order.
func (m *RWMutex) Readers(ctx context.Context) ([]Participant, error) {
	return m.read.participants(ctx, curator.ReadLock)
}
