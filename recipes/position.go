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

// position is a znode in a queue, in the session that created it. One goroutine at a time
// uses it: the one that waits, and then the one of the hold.
type position struct {
	queue   *waitQueue
	session client.Session
	path    string
	name    string
	token   client.Zxid

	own     *client.Watch // of the znode's data; nil before findBlocker
	revoked bool          // another client has asked for a release
}

// await waits until there is no blocker.
func (p *position) await(ctx context.Context, wait bool) error {
	ctx, cancel := p.session.Context(ctx)
	defer cancel()
	for {
		blocker, err := p.findBlocker(ctx)
		if err != nil || blocker == nil {
			return err
		}
		if !wait {
			return ErrNotAcquired
		}
		err = p.waitGone(ctx, znode.Join(p.queue.dir, blocker.Name))
		if err != nil {
			return err
		}
	}
}

// findBlocker lists the queue, without a watch, and returns the znode to wait for. The list
// is of a moment after our znode was created: an earlier znode that is not in the list is
// gone for good.
func (p *position) findBlocker(ctx context.Context) (*curator.Waiter, error) {
	pending := p.queue.c.Async().Children(ctx, p.queue.dir)
	if p.own == nil {
		if err := p.watchOwn(ctx); err != nil { // travels with the list
			return nil, err
		}
	}
	reply, err := pending.Wait(ctx)
	if errors.Is(err, client.ErrConnectionLoss) {
		reply.Children, _, err = p.queue.c.Children(ctx, p.queue.dir)
	}
	if errors.Is(err, client.ErrNoNode) {
		return nil, errPositionLost
	}
	if err != nil {
		return nil, err
	}
	var earlier []curator.Waiter
	waiting := curator.Order(reply.Children, p.queue.markers...)
	for _, c := range waiting {
		if c.Name == p.name {
			return p.queue.blocker(earlier), nil
		}
		earlier = append(earlier, c)
	}
	return nil, errPositionLost // it was deleted
}

// watchOwn leaves a watch on the own znode, which fires when it is deleted or
// its release is asked for.
func (p *position) watchOwn(ctx context.Context) error {
	data, stat, w, err := p.queue.c.GetW(ctx, p.path)
	if errors.Is(err, client.ErrNoNode) {
		return errPositionLost
	}
	if err != nil {
		return err
	}
	if stat.EphemeralOwner != p.session.ID {
		w.Cancel()
		return errPositionLost
	}
	p.own = w
	p.revoked = p.revoked || bytes.Equal(data, []byte(revokeMessage))
	return nil
}

// ownChanged takes in an event of the own watch.
func (p *position) ownChanged(ctx context.Context, e client.Event) error {
	if e.Type != client.EventDataChanged {
		return errPositionLost
	}
	return p.watchOwn(ctx)
}

// waitGone waits until a znode is gone. Reading it is better than exists, which
// would leave a watch even if it is gone already.
func (p *position) waitGone(ctx context.Context, path string) error {
	for {
		_, _, w, err := p.queue.c.GetW(ctx, path)
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
func (p *position) waitEvent(ctx context.Context, w *client.Watch) (changed bool, err error) {
	for {
		select {
		case e, ok := <-w.C():
			if !ok || e.Type == client.EventEnded {
				return false, errPositionLost // with the session
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

// contextError is the error of a context that is done, with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return errors.Join(err, cause)
}

// quit gives up a position that became no grant. It does not wait if ctx has ended.
func (p *position) quit(ctx context.Context) { _ = p.leave(ctx) } // goes on in the background

// leave deletes the znode, and waits for it until ctx ends. Then the deletion
// goes on in the background until it has succeeded or the session, and with it
// the znode, is gone. It is no error if the znode was gone.
func (p *position) leave(ctx context.Context) error {
	bound, cancel := p.session.Context(ctx)
	defer cancel()
	err := ctx.Err()
	if err == nil {
		err = remove(bound, p.queue.c, p.path)
	}
	if err != nil && p.session.Err() != nil {
		return nil
	}
	if err != nil && ctx.Err() != nil {
		go removeInSession(p.queue.c, p.session, p.path)
	}
	return err
}

// remove deletes a znode whose name no other client uses, and repeats that until the znode
// is known to be gone.
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

// removeInSession is remove for an ephemeral, in the background. It ends with
// the session at the latest, and so with the client.
func removeInSession(c *client.Client, s client.Session, path string) {
	ctx, cancel := s.Context(context.Background())
	defer cancel()
	_ = remove(ctx, c, path) // not allowed, or gone with the session
}
