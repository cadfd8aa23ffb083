package recipes

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/zk-lite/zk-lite/client"
)

// counterSize is the length of a counter's data.
const counterSize = 8

// Counter is a 64-bit number that clients change together: no change is lost, and
// none is made twice, also if connections break. It is 0 until it is changed for
// the first time, and wraps around as int64 does.
//
// Its data is that of Curator's DistributedAtomicLong, eight bytes, the highest
// first. While a change is under way the znode has an ephemeral child.
type Counter struct{ cell }

// NewCounter returns the counter at path. Options: WithACL.
func NewCounter(c *client.Client, path string, opts ...Option) *Counter {
	return &Counter{cell{c: c, path: path, acl: newOptions(opts).acl}}
}

// Get returns the value, as a server sees it that is not behind what was
// acknowledged before.
func (n *Counter) Get(ctx context.Context) (int64, error) {
	var data []byte
	var exists bool
	err := afterSync(ctx, n.c, n.path, func() (err error) {
		data, _, exists, err = n.get(ctx)
		return err
	}, nil)
	if err != nil {
		return 0, err
	}
	return n.decode(data, exists)
}

// Add adds a number, which may be negative, and returns the new value.
//
// Errors: client.ErrOutcomeUnknown if ctx or the session ends before it is known
// whether the number was added.
func (n *Counter) Add(ctx context.Context, delta int64) (int64, error) {
	_, now, err := n.change(ctx, func(v int64) (int64, bool) { return v + delta, true })
	return now, err
}

// Set replaces the value, whatever it is, and returns the old one. Errors as with
// Add.
func (n *Counter) Set(ctx context.Context, value int64) (int64, error) {
	was, _, err := n.change(ctx, func(int64) (int64, bool) { return value, true })
	return was, err
}

// CompareAndSwap replaces the value if it is the old one, and reports whether it
// was. Errors as with Add.
func (n *Counter) CompareAndSwap(ctx context.Context, old, value int64) (bool, error) {
	was, _, err := n.change(ctx, func(v int64) (int64, bool) { return value, v == old })
	return err == nil && was == old, err
}

func (n *Counter) change(
	ctx context.Context, f func(int64) (int64, bool),
) (was, now int64, err error) {
	err = n.update(ctx, func(data []byte, exists bool) ([]byte, bool, error) {
		var err error
		if was, err = n.decode(data, exists); err != nil {
			return nil, false, err
		}
		var write bool
		now, write = f(was)
		return binary.BigEndian.AppendUint64(nil, uint64(now)), write, nil
	})
	return was, now, err
}

func (n *Counter) decode(data []byte, exists bool) (int64, error) {
	switch {
	case !exists:
		return 0, nil
	case len(data) != counterSize:
		return 0, fmt.Errorf("%s is no counter: its data has %d bytes, want %d: %w",
			n.path, len(data), counterSize, client.ErrMarshalling)
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}
