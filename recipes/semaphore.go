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
	leaseName       = "lease-"
)

// maxTryAcquire bounds how often TryAcquire looks again after it found somebody
// in the door but not all places taken.
const maxTryAcquire = 16

// Semaphore is a number of places, granted in the order in which they were asked
// for. Everybody must use the same number.
//
// As in Curator's InterProcessSemaphoreV2, whoever wants a place first takes a
// mutex, the door (path/locks); makes a znode path/leases/_c_<guid>-lease-<number>;
// waits in the door until there are not too many of them; and leaves the door. So
// only one watches the places, however many wait.
type Semaphore struct {
	door   *line
	leases *line
	places int
	strict bool
}

// NewSemaphore returns the semaphore at path with a number of places.
// Options: WithData, WithACL, WithLossOnSuspension.
func NewSemaphore(c *client.Client, path string, places int, opts ...Option) *Semaphore {
	o := newOptions(opts)
	return &Semaphore{
		door: &line{
			c: c, dir: znode.Join(path, semaphoreLocks), base: curator.Lock,
			markers: []string{curator.Lock}, acl: o.acl, blocker: lastOf,
		},
		leases: &line{
			c: c, dir: znode.Join(path, semaphoreLeases), base: leaseName,
			markers: []string{leaseName}, data: o.data, acl: o.acl,
		},
		places: places, strict: o.strict,
	}
}

// Acquire waits until there is a place, or ctx ends.
func (s *Semaphore) Acquire(ctx context.Context) (*Grant, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	for {
		door, err := s.door.acquire(ctx, true)
		if err == nil {
			var g *Grant
			if g, err = s.enter(ctx, door, true); err == nil {
				return g, nil
			}
		}
		if !startAgain(ctx, s.leases.c, err) {
			return nil, err
		}
	}
}

// TryAcquire is Acquire without waiting for a place. If all are taken, the error
// is ErrNotAcquired.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Grant, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	for range maxTryAcquire {
		door, err := s.door.acquire(ctx, false)
		if err == nil {
			var g *Grant
			if g, err = s.enter(ctx, door, false); err == nil {
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
		// Somebody is in the door: for good if there is no place for them, or
		// just passing through.
		names, _, err := s.leases.c.Children(ctx, s.leases.dir)
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			return nil, err
		}
		if len(names) > s.places {
			break
		}
	}
	return nil, ErrNotAcquired
}

// enter takes a place from within the door, and leaves the door.
func (s *Semaphore) enter(ctx context.Context, door *place, wait bool) (*Grant, error) {
	defer door.quit(ctx)
	p, err := s.leases.join(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, door, p, wait); err != nil {
		p.quit(ctx)
		return nil, err
	}
	return newGrant(p, s.strict), nil
}

func (s *Semaphore) check() error {
	if s.places < 1 {
		return fmt.Errorf("semaphore %s: %d places, want at least 1: %w", znode.Parent(s.door.dir), s.places,
			client.ErrBadArguments)
	}
	return nil
}

// await waits until there are not more leases than places.
func (s *Semaphore) await(ctx context.Context, door, p *place, wait bool) error {
	ctx, cancel := p.session.Context(ctx)
	defer cancel()
	if err := p.watchOwn(ctx); err != nil {
		return err
	}
	for {
		names, _, w, err := p.line.c.ChildrenW(ctx, s.leases.dir)
		if err != nil {
			return err
		}
		mine := slices.Contains(names, p.name)
		if mine && len(names) > s.places && wait {
			if err := s.waitChange(ctx, door, p, w); err != nil {
				return err
			}
			continue
		}
		w.Cancel()
		switch {
		case !mine:
			return errPlaceLost
		case len(names) > s.places:
			return ErrNotAcquired
		}
		return nil
	}
}

// waitChange waits for the event of w, and that nobody takes away the lease or
// the door. The watch is over when it returns.
func (s *Semaphore) waitChange(ctx context.Context, door, p *place, w *client.Watch) error {
	defer w.Cancel()
	for {
		var err error
		select {
		case e, ok := <-w.C():
			if !ok || e.Type == client.EventEnded {
				return errPlaceLost
			}
			return nil
		case e := <-p.own.C():
			err = p.ownChanged(ctx, e)
		case e := <-door.own.C():
			err = door.ownChanged(ctx, e)
		case <-ctx.Done():
			err = contextError(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// Holders returns those who have a place, and behind them the one who waits for
// one, if anybody does.
func (s *Semaphore) Holders(ctx context.Context) ([]Participant, error) {
	return s.leases.participants(ctx)
}
