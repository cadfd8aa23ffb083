package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// ChildrenReply is the answer to getChildren2.
type ChildrenReply struct {
	Children []string // names, not paths, in no particular order
	Stat     Stat     // of the parent
	Watch    *Watch   // nil if none was asked for
}

type getChildrenOp struct {
	Pending[ChildrenReply]
	req wire.GetChildrenRequest
}

func (op *getChildrenOp) request() wire.Request { return &op.req }

func (op *getChildrenOp) decode(r *jute.Reader) {
	var resp wire.GetChildren2Response
	resp.Decode(r)
	op.value = ChildrenReply{Children: resp.Children, Stat: resp.Stat, Watch: op.watch}
}

func (c *Client) getChildren(
	ctx context.Context, path string, watch bool,
) *Pending[ChildrenReply] {
	op := new(getChildrenOp)
	if c.prepare(&op.call, wire.OpGetChildren2, path, false) {
		op.req = wire.GetChildrenRequest{Path: op.full, Watch: watch}
		if watch {
			op.watch = newWatch(c, op.full, watchChild, 1)
		}
		c.submit(ctx, op)
	}
	return &op.Pending
}

// Children returns the names of a znode's children, in no particular order, and
// the znode's Stat.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	v, err := read(ctx, func() *Pending[ChildrenReply] { return c.getChildren(ctx, path, false) })
	return v.Children, v.Stat, err
}

// Children is Client.Children without waiting for the answer.
func (a Async) Children(ctx context.Context, path string) *Pending[ChildrenReply] {
	return a.c.getChildren(ctx, path, false)
}

// ChildrenW is Children, and leaves a watch that fires when a child is created
// or deleted, or the znode itself is deleted. There is no watch if there is an
// error.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[ChildrenReply] { return c.getChildren(ctx, path, true) })
	return v.Children, v.Stat, v.Watch, err
}

// ChildrenW is Client.ChildrenW without waiting for the answer.
func (a Async) ChildrenW(ctx context.Context, path string) *Pending[ChildrenReply] {
	return a.c.getChildren(ctx, path, true)
}
