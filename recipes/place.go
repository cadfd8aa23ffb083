package recipes

import (
	"bytes"
	"context"
	"errors"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// revokeMessage in the data of a lock's znode asks its owner to release it
// (Curator's LockInternals.REVOKE_MESSAGE).
const revokeMessage = "__REVOKE__"

// place is a znode in a line, in the session that made it. One goroutine at a
// time uses it: the one that waits, and then the one of the hold.
type place struct {
	line    *line
	session client.Session
	path    string
	name    string
	token   client.Zxid

	own     *client.Watch // of the znode's data; nil before look
	revoked bool          // somebody has asked for a release
}

// await waits until nobody is in front.
func (p *place) await(ctx context.Context, wait bool) error {
	ctx, cancel := p.session.Context(ctx)
	defer cancel()
	for {
		blocker, err := p.look(ctx)
		if err != nil || blocker == nil {
			return err
		}
		if !wait {
			return ErrNotAcquired
		}
		err = p.waitGone(ctx, znode.Join(p.line.dir, blocker.Name))
		if err != nil {
			return err
		}
	}
}

// look lists the line, without a watch, and returns whom to wait for. What is
// listed was there at a moment after our znode was: whoever is in front and not
// in the list has gone for good.
func (p *place) look(ctx context.Context) (*curator.Waiter, error) {
	pending := p.line.c.Async().Children(ctx, p.line.dir)
	if p.own == nil {
		if err := p.watchOwn(ctx); err != nil { // travels with the list
			return nil, err
		}
	}
	reply, err := pending.Wait(ctx)
	if errors.Is(err, client.ErrConnectionLoss) {
		reply.Children, _, err = p.line.c.Children(ctx, p.line.dir)
	}
	if errors.Is(err, client.ErrNoNode) {
		return nil, errPlaceLost
	}
	if err != nil {
		return nil, err
	}
	var earlier []curator.Waiter
	line := curator.Order(reply.Children, p.line.markers...)
	for _, c := range line {
		if c.Name == p.name {
			return p.line.blocker(earlier), nil
		}
		earlier = append(earlier, c)
	}
	return nil, errPlaceLost // somebody has deleted it
}

// watchOwn leaves a watch on the own znode, which fires when it is deleted or
// its release is asked for.
func (p *place) watchOwn(ctx context.Context) error {
	data, stat, w, err := p.line.c.GetW(ctx, p.path)
	if errors.Is(err, client.ErrNoNode) {
		return errPlaceLost
	}
	if err != nil {
		return err
	}
	if stat.EphemeralOwner != p.session.ID {
		w.Cancel()
		return errPlaceLost
	}
	p.own = w
	p.revoked = p.revoked || bytes.Equal(data, []byte(revokeMessage))
	return nil
}

// ownChanged takes in an event of the own watch.
func (p *place) ownChanged(ctx context.Context, e client.Event) error {
	if e.Type != client.EventDataChanged {
		return errPlaceLost
	}
	return p.watchOwn(ctx)
}

// waitGone waits until a znode is gone. Reading it is better than exists, which
// would leave a watch even if it is gone already.
func (p *place) waitGone(ctx context.Context, path string) error {
	for {
		_, _, w, err := p.line.c.GetW(ctx, path)
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		changed, err := p.waitEvent(ctx, w)
		if err != nil || !changed {
			return err
		}
	}
}

// waitEvent waits for the event of w, and reports whether it is a change of data.
// The watch is over when it returns.
func (p *place) waitEvent(ctx context.Context, w *client.Watch) (changed bool, err error) {
	for {
		select {
		case e, ok := <-w.C():
			if !ok || e.Type == client.EventEnded {
				return false, errPlaceLost // with the session
			}
			return e.Type == client.EventDataChanged, nil
		case e := <-p.own.C():
			if err := p.ownChanged(ctx, e); err != nil {
				w.Cancel()
				return false, err
			}
		case <-ctx.Done():
			w.Cancel()
			return false, contextError(ctx)
		}
	}
}

// contextError is the error of a context that is done, with what it says of the
// reason.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return errors.Join(err, cause)
}

// quit leaves a line in which there is nothing to be had, and does not wait if
// ctx has ended.
func (p *place) quit(ctx context.Context) { _ = p.leave(ctx) } // goes on in the background

// leave deletes the znode, and waits for it until ctx ends. Then the deletion
// goes on in the background until it has succeeded or the session, and with it
// the znode, is gone. It is no error if the znode was gone.
func (p *place) leave(ctx context.Context) error {
	bound, cancel := p.session.Context(ctx)
	defer cancel()
	err := ctx.Err()
	if err == nil {
		err = remove(bound, p.line.c, p.path)
	}
	if err != nil && p.session.Err() != nil {
		return nil
	}
	if err != nil && ctx.Err() != nil {
		go removeInSession(p.line.c, p.session, p.path)
	}
	return err
}

// remove deletes a znode that nobody else makes again, until it is known to be
// gone.
func remove(ctx context.Context, c *client.Client, path string) error {
	for {
		err := c.Delete(ctx, path, client.AnyVersion)
		switch {
		case err == nil || errors.Is(err, client.ErrNoNode):
			return nil
		case !errors.Is(err, client.ErrOutcomeUnknown) || ctx.Err() != nil:
			return err
		}
	}
}

// removeInSession is remove for an ephemeral that nobody waits for. It ends with
// the session at the latest, and so with the client.
func removeInSession(c *client.Client, s client.Session, path string) {
	ctx, cancel := s.Context(context.Background())
	defer cancel()
	_ = remove(ctx, c, path) // not allowed, or gone with the session
}
