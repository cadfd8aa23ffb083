package recipes

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// waitQueue is a queue of ephemeral sequential znodes below one parent, first come first
// served. A waiter watches only one znode ahead of it, so that a release wakes one
// waiter and not all.
type waitQueue struct {
	c       *client.Client
	dir     string
	base    string   // of the names that this queue creates, after the GUID
	markers []string // of the names that are in the queue
	data    []byte
	acl     []client.ACL
	// waitsFor are the markers of the znodes that a waiter waits for; all if there are none.
	waitsFor []string
	delay    *time.Duration // of WithLockDelay
}

// acquire joins the queue and waits until its position is the first; with wait false it
// leaves again at once, with ErrNotAcquired. If the session is lost while it waits, it
// joins again at the end.
//
//	acquire
//	  join               the znode, protected against a lost answer
//	  position.await     until there is no predecessor
//	    findPredecessor  list without a watch
//	    waitGone         a watch on the predecessor
//	  position.takeOver  if a lost holder has left a lock delay, or this one wants one
//	  position.quit      if anything failed
func (q *waitQueue) acquire(ctx context.Context, wait bool) (*position, error) {
	if err := q.checkDelay(); err != nil {
		return nil, err
	}
	for {
		p, err := q.join(ctx)
		if err == nil {
			if err = p.await(ctx, wait); err == nil {
				return p, nil
			}
			p.quit(ctx)
		}
		if !startAgain(ctx, q.c, err) {
			return nil, err
		}
	}
}

// join creates a znode at the end of the queue. If the answer is lost, the client looks
// for the znode by the GUID in its name (CreateProtected).
func (q *waitQueue) join(ctx context.Context) (*position, error) {
	var path string
	var stat client.Stat
	err := withParents(ctx, q.c, q.dir, q.acl, func() (err error) {
		path, stat, err = q.c.CreateProtected(ctx,
			znode.Join(q.dir, q.base), q.data, client.EphemeralSequential, q.acl...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return q.positionOf(path, stat)
}

// positionOf is the position of a znode that has just been created. If the znode is not
// the current session's, its session has been lost since. It must not become a grant:
// the servers will delete it (CURATOR-696).
func (q *waitQueue) positionOf(path string, stat client.Stat) (*position, error) {
	s := q.c.Session()
	if stat.EphemeralOwner != s.ID || s.Err() != nil {
		return nil, errPositionLost
	}
	p := &position{queue: q, session: s, path: path, name: znode.Base(path), token: stat.Czxid,
		ctime: stat.Ctime}
	return p, nil
}

// Participant is a client that holds or waits.
type Participant struct {
	Path         string
	Data         []byte // what WithData has stored
	FencingToken int64
	Owner        client.SessionID
}

// participants returns those in the queue that have one of the markers, in order. It
// sees every write that was acknowledged before the call.
func (q *waitQueue) participants(ctx context.Context, markers ...string) ([]Participant, error) {
	var list []Participant
	for p, err := range q.walk(ctx, markers...) {
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// first is the first of participants, and false if there is none.
func (q *waitQueue) first(ctx context.Context) (Participant, bool, error) {
	for p, err := range q.walk(ctx) {
		return p, err == nil, err
	}
	return Participant{}, false, nil
}

// walk yields participants as it reads them, up to an error.
func (q *waitQueue) walk(ctx context.Context, markers ...string) iter.Seq2[Participant, error] {
	return func(yield func(Participant, error) bool) {
		var names []string
		err := afterSync(ctx, q.c, q.dir, func() (err error) {
			names, _, err = q.c.Children(ctx, q.dir)
			return err
		}, nil)
		if err != nil {
			if !errors.Is(err, client.ErrNoNode) {
				yield(Participant{}, err)
			}
			return
		}
		for _, x := range curator.Order(names, q.markers...) {
			if len(markers) > 0 && !slices.Contains(markers, x.Marker) {
				continue
			}
			path := znode.Join(q.dir, x.Name)
			data, stat, err := q.c.Get(ctx, path)
			if errors.Is(err, client.ErrNoNode) {
				continue // it has left meanwhile
			}
			more := yield(Participant{path, data, int64(stat.Czxid), stat.EphemeralOwner}, err)
			if !more || err != nil {
				return
			}
		}
	}
}

// revokeMessage in the data of a lock's znode asks its owner to release it
// (Curator's LockInternals.REVOKE_MESSAGE).
const revokeMessage = "__REVOKE__"

// position is a znode in a queue, in the session that created it. One goroutine at a time
// uses it: the waiter's, and then the hold's.
type position struct {
	queue   *waitQueue
	session client.Session
	path    string
	name    string
	token   client.Zxid
	ctime   int64 // of the znode
	marked  bool  // it has left a mark of its lock delay

	own     *client.Watch // of the znode's data; nil before findPredecessor
	revoked bool          // another client has asked for a release
}

// await waits until there is no predecessor.
func (p *position) await(ctx context.Context, wait bool) error {
	ctx, cancel := p.session.Context(ctx)
	defer cancel()
	for {
		predecessor, marked, err := p.findPredecessor(ctx)
		if err != nil {
			return err
		}
		if predecessor == nil {
			return p.takeOver(ctx, wait, marked)
		}
		if !wait {
			return ErrNotAcquired
		}
		err = p.waitGone(ctx, znode.Join(p.queue.dir, predecessor.Name))
		if err != nil {
			return err
		}
	}
}

// findPredecessor lists the queue, without a watch, and returns the znode to wait for. The list
// is newer than our znode, so an earlier znode that is not in the list never comes back. marked is whether there is a
// mark of a lock delay.
func (p *position) findPredecessor(
	ctx context.Context,
) (predecessor *curator.Waiter, marked bool, err error) {
	pending := p.queue.c.Async().Children(ctx, p.queue.dir)
	if p.own == nil {
		if err := p.watchOwn(ctx); err != nil { // travels with the list
			return nil, false, err
		}
	}
	reply, err := pending.Wait(ctx)
	if errors.Is(err, client.ErrConnectionLoss) {
		reply.Children, _, err = p.queue.c.Children(ctx, p.queue.dir)
	}
	if errors.Is(err, client.ErrNoNode) {
		return nil, false, errPositionLost
	}
	if err != nil {
		return nil, false, err
	}
	ahead, queued := curator.Ahead(reply.Children, p.name, p.queue.markers...)
	if !queued {
		return nil, false, errPositionLost // it was deleted
	}
	marked = slices.Contains(reply.Children, curator.DelayName)
	return curator.Predecessor(ahead, p.queue.waitsFor...), marked, nil
}

// watchOwn sets a watch on the own znode, which fires when it is deleted or
// another client asks for its release.
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

// ownChanged handles an event of the own watch.
func (p *position) ownChanged(ctx context.Context, e client.Event) error {
	if e.Type != client.EventDataChanged {
		return errPositionLost
	}
	return p.watchOwn(ctx)
}

// waitGone waits until a znode is deleted. It reads it because exists would set
// a watch even if the znode no longer exists.
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

// quit gives up a position that did not become a grant. It does not wait if ctx has
// ended.
func (p *position) quit(ctx context.Context) { _ = p.leave(ctx) } // continues in the background

// leave deletes the znode, and waits for that until ctx ends. Then the deletion
// continues in the background until it has succeeded or the session, and with
// it the znode, has ended. It is not an error if the znode no longer exists.
func (p *position) leave(ctx context.Context) error {
	bound, cancel := p.session.Context(ctx)
	defer cancel()
	err := ctx.Err()
	if err == nil {
		err = p.removeGrant(bound)
	}
	if err != nil && p.session.Err() != nil {
		return nil
	}
	if err != nil && ctx.Err() != nil {
		go p.removeInSession()
	}
	return err
}

// removeInSession is removeGrant in the background. It ends with the session at the latest, and so with the client.
func (p *position) removeInSession() {
	ctx, cancel := p.session.Context(context.Background())
	defer cancel()
	_ = p.removeGrant(ctx) // not allowed, or deleted with the session
}
