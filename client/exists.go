package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// ExistsReply is the answer to exists.
type ExistsReply struct {
	Exists bool
	Stat   Stat   // zero if the znode does not exist
	Watch  *Watch // nil if none was asked for
}

type existsOp struct {
	Pending[ExistsReply]
	req wire.ExistsRequest
}

func (op *existsOp) request() wire.Request { return &op.req }

func (op *existsOp) decode(r *jute.Reader) {
	var resp wire.ExistsResponse
	resp.Decode(r)
	op.value = ExistsReply{Exists: true, Stat: resp.Stat, Watch: op.watch}
}

func (op *existsOp) tolerate(code znode.Error) bool {
	op.value = ExistsReply{Watch: op.watch}
	return code == ErrNoNode
}

func (c *Client) exists(ctx context.Context, path string, watch bool) *Pending[ExistsReply] {
	op := new(existsOp)
	if c.prepare(&op.call, wire.OpExists, path, false) {
		op.req = wire.ExistsRequest{Path: op.full, Watch: watch}
		if watch {
			op.watch = newWatch(c, op.full, watchData, 1)
		}
		c.submit(ctx, op)
	}
	return &op.Pending
}

// Exists reports whether there is a znode, and returns its Stat. That there is
// none is no error.
//
// Errors: ErrNoAuth (READ, since ZooKeeper 3.9.2).
func (c *Client) Exists(ctx context.Context, path string) (bool, Stat, error) {
	v, err := read(ctx, func() *Pending[ExistsReply] { return c.exists(ctx, path, false) })
	return v.Exists, v.Stat, err
}

// Exists is Client.Exists without waiting for the answer.
func (a Async) Exists(ctx context.Context, path string) *Pending[ExistsReply] {
	return a.c.exists(ctx, path, false)
}

// ExistsW is Exists, and leaves a watch in any case: it fires when the znode is
// created, its data changes, or it is deleted.
func (c *Client) ExistsW(ctx context.Context, path string) (bool, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[ExistsReply] { return c.exists(ctx, path, true) })
	return v.Exists, v.Stat, v.Watch, err
}

// ExistsW is Client.ExistsW without waiting for the answer.
func (a Async) ExistsW(ctx context.Context, path string) *Pending[ExistsReply] {
	return a.c.exists(ctx, path, true)
}
