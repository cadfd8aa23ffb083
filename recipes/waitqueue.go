package recipes

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/curator"
	"github.com/zk-lite/zk-lite/znode"
)

// maxParentTries bounds how often a parent is created again because the server has
// deleted it, as an empty container, before the child was there. Twice in a row does not
// happen; more often means that another client deletes it on purpose.
const maxParentTries = 8

// waitQueue is a queue of ephemeral sequential znodes below one parent, first come
// first served. A waiter watches one znode before it and nothing else, so that a release
// wakes one waiter and not all.
type waitQueue struct {
	c       *client.Client
	dir     string
	base    string   // of the names that this queue creates, after the GUID
	markers []string // of the names that are in the queue
	data    []byte
	acl     []client.ACL
	// blocker returns the znode to wait for, given all earlier ones in order; nil if
	// there is none to wait for.
	blocker func(earlier []curator.Waiter) *curator.Waiter
}

// lastOf is the blocker of waiters that wait for all before them.
func lastOf(earlier []curator.Waiter) *curator.Waiter {
	if len(earlier) == 0 {
		return nil
	}
	return &earlier[len(earlier)-1]
}

// acquire joins the queue and waits until its position is the first; with wait false it
// leaves again at once, with ErrNotAcquired. If the session is lost while it waits, it
// joins again at the end.
//
//	acquire
//	  join            the znode, protected against a lost answer
//	  position.await  until there is no blocker
//	    findBlocker   list without a watch
//	    waitGone      a watch on the blocker
//	  position.quit   if anything failed
func (q *waitQueue) acquire(ctx context.Context, wait bool) (*position, error) {
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

// startAgain reports whether the reason of an error is only that a session was lost, and
// the client has a new one.
func startAgain(ctx context.Context, c *client.Client, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	return errors.Is(err, errPositionLost) ||
		errors.Is(err, client.ErrSessionExpired) && c.Session().Err() == nil
}

// join creates a znode at the end of the queue. If the answer is lost the client finds out
// by the GUID in the name whether the znode is there (CreateProtected).
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

// positionOf is the position of a znode that has just been created. A znode that is not
// the current session's belongs to a session that has been lost since. It must not
// become a grant: the servers will delete it (CURATOR-696).
func (q *waitQueue) positionOf(path string, stat client.Stat) (*position, error) {
	s := q.c.Session()
	if stat.EphemeralOwner != s.ID || s.Err() != nil {
		return nil, errPositionLost
	}
	p := &position{queue: q, session: s, path: path, name: znode.Base(path), token: stat.Czxid}
	return p, nil
}

// withParents calls create. If the parent is missing it creates the parent as a container,
// which the server deletes when it has become empty, and calls create again.
func withParents(
	ctx context.Context, c *client.Client, dir string, acl []client.ACL, create func() error,
) error {
	for try := 1; ; try++ {
		err := create()
		if !errors.Is(err, client.ErrNoNode) || try == maxParentTries {
			return err
		}
		err = c.EnsurePath(ctx, dir, client.Container, acl...)
		if err != nil && !(errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil) {
			return err
		}
	}
}

// Participant is a client that holds or waits.
type Participant struct {
	Path         string
	Data         []byte // what WithData has stored
	FencingToken int64
	Owner        client.SessionID
}

// participants returns all in the queue that have one of the markers, in order. The list
// is not older than what was acknowledged before the call.
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
				continue // it has left since
			}
			more := yield(Participant{path, data, int64(stat.Czxid), stat.EphemeralOwner}, err)
			if !more || err != nil {
				return
			}
		}
	}
}
