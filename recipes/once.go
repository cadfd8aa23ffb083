package recipes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// ticketName starts the name of the znode that shows that a transaction has
// happened.
const ticketName = "_ticket-"

// once commits transactions whose outcome must be known. With each it makes an
// ephemeral znode of a random name, the ticket: if the answer is lost, the ticket
// is there if and only if the transaction has happened. It is deleted afterwards,
// in the background.
type once struct {
	c   *client.Client
	dir string // of the tickets
	// keep is the parent that is made as a persistent znode; other missing
	// parents are containers. "" if all are.
	keep string
	acl  []client.ACL
}

// commit commits the operations that build adds. It makes the parents of what
// they create. Other errors are those of the operations, which then have not
// happened; ErrOutcomeUnknown if ctx or the session ends before it is known.
func (o *once) commit(ctx context.Context, build func(*client.Multi)) error {
	session := o.c.Session()
	bound, cancel := session.Context(ctx)
	defer cancel()
	ticket := znode.Join(o.dir, ticketName+rand.Text())
	for parents := 0; ; {
		m := o.c.Multi()
		build(m)
		m.Create(ticket, nil, client.Ephemeral, o.acl...)
		err := m.Commit(bound)
		if err == nil {
			o.forget(bound, session, ticket)
			return nil
		}
		if parent, ok := missingParent(err); ok && parents < maxParentTries {
			parents++
			if err := o.ensure(bound, parent); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, client.ErrOutcomeUnknown) {
			return err
		}
		happened, ferr := o.find(bound, ticket)
		if ferr != nil {
			go removeInSession(o.c, session, ticket)
			return fmt.Errorf("%w: %w", err, ferr)
		}
		if happened {
			o.forget(bound, session, ticket)
			return nil
		}
	}
}

// forget deletes a ticket and does not wait for it. Sent from here, the deletion
// travels in front of whatever the caller does next; if it is lost with the
// connection it is repeated, for the session may live for years.
func (o *once) forget(ctx context.Context, s client.Session, ticket string) {
	pending := o.c.Async().Delete(ctx, ticket, client.AnyVersion)
	go func() {
		<-pending.Done()
		_, err := pending.Wait(context.Background())
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			removeInSession(o.c, s, ticket)
		}
	}()
}

// find looks for a ticket. The sync orders that behind the transaction, which was
// sent over another connection.
func (o *once) find(ctx context.Context, ticket string) (bool, error) {
	var exists bool
	err := afterSync(ctx, o.c, ticket, func() (err error) {
		exists, _, err = o.c.Exists(ctx, ticket)
		return err
	}, nil)
	return exists, err
}

func (o *once) ensure(ctx context.Context, parent string) error {
	mode := client.Container
	if parent == o.keep {
		mode = client.Persistent
	}
	err := o.c.EnsurePath(ctx, parent, mode, o.acl...)
	if errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil {
		return nil // the transaction reports it
	}
	return err
}

// missingParent returns the parent for want of which a transaction has failed.
func missingParent(err error) (string, bool) {
	var op *client.MultiError
	if !errors.As(err, &op) || !errors.Is(op.Err, client.ErrNoNode) ||
		!strings.HasPrefix(op.Op, "create") {
		return "", false
	}
	return znode.Parent(op.Path), true
}

// cell is the data of one znode that is changed by reading, computing and writing
// back if no other client has written in between.
type cell struct {
	c    *client.Client
	path string
	acl  []client.ACL
}

// get reads the data. A znode that does not exist has none.
func (x *cell) get(ctx context.Context) (data []byte, stat client.Stat, exists bool, err error) {
	data, stat, err = x.c.Get(ctx, x.path)
	if errors.Is(err, client.ErrNoNode) {
		return nil, client.Stat{}, false, nil
	}
	return data, stat, err == nil, err
}

// update replaces the data by what f makes of it, exactly once. It calls f again
// if another client was quicker: one of the competing clients always succeeds. If f
// returns false or an error nothing is written.
//
// Tickets are children of the znode; see once.
func (x *cell) update(
	ctx context.Context, f func(old []byte, exists bool) (data []byte, write bool, err error),
) error {
	o := &once{c: x.c, dir: x.path, acl: x.acl}
	for {
		old, stat, exists, err := x.get(ctx)
		if err != nil {
			return err
		}
		data, write, err := f(old, exists)
		if err != nil || !write {
			return err
		}
		err = o.commit(ctx, func(m *client.Multi) {
			if exists {
				m.Set(x.path, data, stat.Version)
			} else {
				m.Create(x.path, data, client.Persistent, x.acl...)
			}
		})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, client.ErrOutcomeUnknown):
			return err
		case errors.Is(err, client.ErrBadVersion), errors.Is(err, client.ErrNodeExists),
			exists && errors.Is(err, client.ErrNoNode):
			x.c.Async().Sync(ctx, x.path) // the server may be behind what was read
		case !startAgain(ctx, x.c, err):
			return err
		}
	}
}
