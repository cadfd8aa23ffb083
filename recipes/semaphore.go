package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// The names of a semaphore's znodes (Curator's InterProcessSemaphoreV2).
const (
	semaphoreLocks  = "locks"
	semaphoreLeases = "leases"
)

// maxTryAcquire bounds how often TryAcquire tries again after it found another client at
// the front of the queue, although not all permits are taken.
const maxTryAcquire = 16

// Semaphore is a number of permits, granted in the order of the requests. All clients
// must use the same number.
//
// It works as Curator's InterProcessSemaphoreV2. A client first takes a mutex
// (path/locks). Holding it, it creates its lease, the znode
// path/leases/_c_<guid>-lease-<number>, waits until there are no more leases than
// permits, and releases the mutex. So only one client watches the leases, however many
// wait.
type Semaphore struct {
	waiters *waitQueue
	leases  *waitQueue
	permits int
	strict  bool
}

// NewSemaphore returns the semaphore at path with a number of permits.
// Options: WithData, WithACL, WithLossOnSuspension.
func NewSemaphore(c *client.Client, path string, permits int, opts ...Option) *Semaphore {
	o := newOptions(opts)
	return &Semaphore{
		waiters: &waitQueue{
			c: c, dir: znode.Join(path, semaphoreLocks), base: curator.Lock,
			markers: []string{curator.Lock}, acl: o.acl,
		},
		leases: &waitQueue{
			c: c, dir: znode.Join(path, semaphoreLeases), base: curator.Lease,
			markers: []string{curator.Lease}, data: o.data, acl: o.acl,
		},
		permits: permits, strict: o.strict,
	}
}

// Acquire waits until there is a permit, or ctx ends.
func (s *Semaphore) Acquire(ctx context.Context) (*Grant, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	for {
		turn, err := s.waiters.acquire(ctx, true)
		if err == nil {
			var g *Grant
			if g, err = s.enter(ctx, turn, true); err == nil {
				return g, nil
			}
		}
		if !startAgain(ctx, s.leases.c, err) {
			return nil, err
		}
	}
}

// TryAcquire is Acquire without waiting for a permit. If all are taken, the error
// is ErrNotAcquired.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Grant, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	for range maxTryAcquire {
		turn, err := s.waiters.acquire(ctx, false)
		if err == nil {
			var g *Grant
			if g, err = s.enter(ctx, turn, false); err == nil {
				return g, nil
			}
			if !startAgain(ctx, s.leases.c, err) {
				return nil, err
			}
			continue
		}
		if !errors.Is(err, ErrNotAcquired) {
			return nil, err
		}
		// Another client holds the mutex: for long if there is no permit for it,
		// else for a moment.
		names, _, err := s.leases.c.Children(ctx, s.leases.dir)
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			return nil, err
		}
		if len(names) > s.permits {
			break
		}
	}
	return nil, ErrNotAcquired
}

// enter takes a permit while it holds the mutex, and releases the mutex.
func (s *Semaphore) enter(ctx context.Context, turn *position, wait bool) (*Grant, error) {
	defer turn.quit(ctx)
	p, err := s.leases.join(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, turn, p, wait); err != nil {
		p.quit(ctx)
		return nil, err
	}
	return newGrant(p, s.strict), nil
}

func (s *Semaphore) check() error {
	if s.permits < 1 {
		return fmt.Errorf("semaphore %s: %d permits, want at least 1: %w", znode.Parent(s.waiters.dir), s.permits,
			client.ErrBadArguments)
	}
	return nil
}

// await waits until there are no more leases than permits.
func (s *Semaphore) await(ctx context.Context, turn, p *position, wait bool) error {
	ctx, cancel := p.session.Context(ctx)
	defer cancel()
	if err := p.watchOwn(ctx); err != nil {
		return err
	}
	for {
		names, _, w, err := p.queue.c.ChildrenW(ctx, s.leases.dir)
		if err != nil {
			return err
		}
		mine := slices.Contains(names, p.name)
		if mine && len(names) > s.permits && wait {
			if err := s.waitChange(ctx, turn, p, w); err != nil {
				return err
			}
			continue
		}
		w.Cancel()
		switch {
		case !mine:
			return errPositionLost
		case len(names) > s.permits:
			return ErrNotAcquired
		}
		return nil
	}
}

// waitChange waits for the event of w. It fails if the lease or the mutex is lost. The
// watch is over when it returns.
func (s *Semaphore) waitChange(ctx context.Context, turn, p *position, w *client.Watch) error {
	defer w.Cancel()
	for {
		var err error
		select {
		case e, ok := <-w.C():
			if !ok || e.Type == client.EventEnded {
				return errPositionLost
			}
			return nil
		case e := <-p.own.C():
			err = p.ownChanged(ctx, e)
		case e := <-turn.own.C():
			err = turn.ownChanged(ctx, e)
		case <-ctx.Done():
			err = contextError(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// Holders returns the clients that have a permit, followed by the one that holds the
// mutex and waits for a permit, if there is one.
func (s *Semaphore) Holders(ctx context.Context) ([]Participant, error) {
	return s.leases.participants(ctx)
}
