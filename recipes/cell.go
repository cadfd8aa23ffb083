package recipes

import (
	"context"
	"errors"

	"github.com/zk-lite/zk-lite/client"
)

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
