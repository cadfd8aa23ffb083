package recipes

import (
	"context"
	"errors"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// Barrier makes everybody wait from Set to Remove.
//
// It is Curator's DistributedBarrier: a persistent znode that is there while the
// barrier is. It stays if the one who has set it dies.
type Barrier struct {
	c    *client.Client
	path string
	acl  []client.ACL
}

// NewBarrier returns the barrier at path. Options: WithACL.
func NewBarrier(c *client.Client, path string, opts ...Option) *Barrier {
	return &Barrier{c: c, path: path, acl: newOptions(opts).acl}
}

// Set sets the barrier. It is no error if it is set already.
func (b *Barrier) Set(ctx context.Context) error {
	for {
		err := withParents(ctx, b.c, znode.Parent(b.path), b.acl, func() error {
			_, _, err := b.c.Create(ctx, b.path, nil, client.Persistent, b.acl...)
			return err
		})
		switch {
		case err == nil || errors.Is(err, client.ErrNodeExists):
			return nil
		case !errors.Is(err, client.ErrOutcomeUnknown) || ctx.Err() != nil:
			return err
		}
	}
}

// Remove removes the barrier, so that all that wait go on. It is no error if it is
// not set.
func (b *Barrier) Remove(ctx context.Context) error { return remove(ctx, b.c, b.path) }

// Wait returns when the barrier is not set, or ctx ends. One that was set before, by
// whomever, is waited for.
func (b *Barrier) Wait(ctx context.Context) error {
	for {
		var w *client.Watch
		err := afterSync(ctx, b.c, b.path, func() (err error) {
			_, _, w, err = b.c.GetW(ctx, b.path)
			return err
		}, func() { w.Cancel() })
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if err == nil {
			err = waitEvents(ctx, w)
		}
		if err != nil && !startAgain(ctx, b.c, err) {
			return err
		}
	}
}

// waitEvents waits until one of the watches fires, and cancels the others. The
// error is errPositionLost if they ended with their session.
func waitEvents(ctx context.Context, w *client.Watch, more ...*client.Watch) error {
	var other <-chan client.Event
	if len(more) > 0 {
		other = more[0].C() // there are two at most
	}
	defer func() {
		w.Cancel()
		for _, w := range more {
			w.Cancel()
		}
	}()
	var e client.Event
	var ok bool
	select {
	case e, ok = <-w.C():
	case e, ok = <-other:
	case <-ctx.Done():
		return contextError(ctx)
	}
	if !ok || e.Type == client.EventEnded {
		return errPositionLost
	}
	return nil
}
