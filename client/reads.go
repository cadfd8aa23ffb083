package client

import (
	"bytes"
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// GetReply is the answer to getData.
type GetReply struct {
	Data  []byte // nil if the znode has null data, which is not the same as none
	Stat  Stat
	Watch *Watch // nil if none was asked for
}

type getDataOp struct {
	Pending[GetReply]
	req wire.GetDataRequest
}

func (op *getDataOp) request() wire.Request { return &op.req }

func (op *getDataOp) decode(r *jute.Reader) {
	var resp wire.GetDataResponse
	resp.Decode(r)
	op.value = GetReply{Data: bytes.Clone(resp.Data), Stat: resp.Stat, Watch: op.watch}
}

func (c *Client) getData(ctx context.Context, path string, watch bool) *Pending[GetReply] {
	op := new(getDataOp)
	if c.prepare(&op.call, wire.OpGetData, path, false) {
		op.req = wire.GetDataRequest{Path: op.full, Watch: watch}
		if watch {
			op.watch = newWatch(c, op.full, watchData, 1)
		}
		c.submit(ctx, op)
	}
	return &op.Pending
}

// Get returns the data and the Stat of a znode.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.getData(ctx, path, false) })
	return v.Data, v.Stat, err
}

// Get is Client.Get without waiting for the answer.
func (a Async) Get(ctx context.Context, path string) *Pending[GetReply] {
	return a.c.getData(ctx, path, false)
}

// GetW is Get, and leaves a watch that fires when the data changes or the znode
// is deleted. There is no watch if there is an error.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	v, err := read(ctx, func() *Pending[GetReply] { return c.getData(ctx, path, true) })
	return v.Data, v.Stat, v.Watch, err
}

// GetW is Client.GetW without waiting for the answer.
func (a Async) GetW(ctx context.Context, path string) *Pending[GetReply] {
	return a.c.getData(ctx, path, true)
}

// getDataMarked is GetAsync for a cache: it notes how many events of w had come
// before the reply.
func (c *Client) getDataMarked(ctx context.Context, path string, w *Watch) *Pending[GetReply] {
	op := new(getDataOp)
	op.marks = w
	if c.prepare(&op.call, wire.OpGetData, path, false) {
		op.req = wire.GetDataRequest{Path: op.full}
		c.submit(ctx, op)
	}
	return &op.Pending
}
