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

// ticketName starts the name of the znode that proves that a transaction
// happened.
const ticketName = "_ticket-"

// once commits transactions whose outcome must be known. Each also creates an
// ephemeral znode with a random name, the ticket: if the answer is lost, the
// ticket exists if and only if the transaction happened. It is deleted
// afterwards, in the background.
type once struct {
	c   *client.Client
	dir string // of the tickets
	// keep is the parent to create as a persistent znode; other missing parents
	// become containers. "" if all do.
	keep string
	acl  []client.ACL
}

// commit commits the operations that build adds, and creates missing parents.
// Its errors are those of the operations, none of which has happened then, and
// ErrOutcomeUnknown if ctx or the session ends before the outcome is known.
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

// forget deletes a ticket without waiting. Sent from here, the deletion precedes
// the caller's next operation. If it is lost with the connection it is repeated,
// because the session may live for years.
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

// find looks for a ticket. The sync orders that after the transaction, which was
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

// missingParent returns the missing parent that made a transaction fail.
func missingParent(err error) (string, bool) {
	var op *client.MultiError
	if !errors.As(err, &op) || !errors.Is(op.Err, client.ErrNoNode) ||
		!strings.HasPrefix(op.Op, "create") {
		return "", false
	}
	return znode.Parent(op.Path), true
}

// cell is the data of a znode that clients change by reading, computing, and
// writing back unless another client has written in between.
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

// update replaces the data by the result of f, exactly once. It calls f again if
// another client was faster: one of the competing clients always succeeds. If f
// returns false or an error, update writes nothing.
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
			x.c.Async().Sync(ctx, x.path) // the server may lag behind the write that won
		case !startAgain(ctx, x.c, err):
			return err
		}
	}
}
