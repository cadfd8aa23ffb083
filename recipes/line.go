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

// maxParentTries bounds how often a parent is made anew because the server has
// deleted it, as an empty container, before the child was there. Twice in a row
// is unheard of; more mean that somebody deletes it on purpose.
const maxParentTries = 8

// line is a queue of ephemeral sequential znodes below one parent, first come
// first served. Whoever waits watches one znode in front and nothing else, so
// that a release wakes one waiter and not all.
type line struct {
	c       *client.Client
	dir     string
	base    string   // of the names that this line makes, behind the GUID
	markers []string // of the names that are in the line
	data    []byte
	acl     []client.ACL
	// blocker returns the one to wait for, given all that are in front, in
	// order; nil if the turn has come.
	blocker func(earlier []curator.Waiter) *curator.Waiter
}

// lastOf is the blocker of those who wait for all in front of them.
func lastOf(earlier []curator.Waiter) *curator.Waiter {
	if len(earlier) == 0 {
		return nil
	}
	return &earlier[len(earlier)-1]
}

// acquire joins the line and waits for the turn; with wait false it leaves again
// at once, with ErrNotAcquired. A waiter whose session is lost joins anew, at the
// end: it has lost nothing but its place.
//
//	acquire
//	  join         the znode, protected against a lost answer
//	  place.await  until nobody is in front
//	    look       list without a watch; who is in front?
//	    waitGone   a watch on that one
//	  place.quit   if anything failed
func (l *line) acquire(ctx context.Context, wait bool) (*place, error) {
	for {
		p, err := l.join(ctx)
		if err == nil {
			if err = p.await(ctx, wait); err == nil {
				return p, nil
			}
			p.quit(ctx)
		}
		if !startAgain(ctx, l.c, err) {
			return nil, err
		}
	}
}

// startAgain reports whether an error only says that a session has been lost
// while its client goes on with another.
func startAgain(ctx context.Context, c *client.Client, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	return errors.Is(err, errPlaceLost) ||
		errors.Is(err, client.ErrSessionExpired) && c.Session().Err() == nil
}

// join makes a znode at the end of the line. If the answer is lost the client
// finds out by the GUID in the name whether it is there (CreateProtected).
func (l *line) join(ctx context.Context) (*place, error) {
	var path string
	var stat client.Stat
	err := withParents(ctx, l.c, l.dir, l.acl, func() (err error) {
		path, stat, err = l.c.CreateProtected(ctx,
			znode.Join(l.dir, l.base), l.data, client.EphemeralSequential, l.acl...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return l.placeAt(path, stat)
}

// placeAt is the place of a znode that has just been made. A znode that is not
// the current session's belongs to one that has been lost since, and must not
// be taken for a grant: the servers delete it sooner or later (CURATOR-696).
func (l *line) placeAt(path string, stat client.Stat) (*place, error) {
	s := l.c.Session()
	if stat.EphemeralOwner != s.ID || s.Err() != nil {
		return nil, errPlaceLost
	}
	p := &place{line: l, session: s, path: path, name: znode.Base(path), token: stat.Czxid}
	return p, nil
}

// withParents calls create, and again after it has made the parent of what could
// not be created, as a container: the server deletes it when it has become empty.
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

// Participant is one who holds or waits.
type Participant struct {
	Path         string
	Data         []byte // what WithData has stored
	FencingToken int64
	Owner        client.SessionID
}

// participants returns all that are in the line and have one of the markers, in
// its order, as a server sees it that is not behind what was acknowledged before.
func (l *line) participants(ctx context.Context, markers ...string) ([]Participant, error) {
	var list []Participant
	for p, err := range l.walk(ctx, markers...) {
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// first is the first of participants, and false if there is none.
func (l *line) first(ctx context.Context) (Participant, bool, error) {
	for p, err := range l.walk(ctx) {
		return p, err == nil, err
	}
	return Participant{}, false, nil
}

// walk yields participants as it reads them, up to an error.
func (l *line) walk(ctx context.Context, markers ...string) iter.Seq2[Participant, error] {
	return func(yield func(Participant, error) bool) {
		var names []string
		err := afterSync(ctx, l.c, l.dir, func() (err error) {
			names, _, err = l.c.Children(ctx, l.dir)
			return err
		}, nil)
		if err != nil {
			if !errors.Is(err, client.ErrNoNode) {
				yield(Participant{}, err)
			}
			return
		}
		for _, x := range curator.Order(names, l.markers...) {
			if len(markers) > 0 && !slices.Contains(markers, x.Marker) {
				continue
			}
			path := znode.Join(l.dir, x.Name)
			data, stat, err := l.c.Get(ctx, path)
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
