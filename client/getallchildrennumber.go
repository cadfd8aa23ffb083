package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

type getAllChildrenNumberOp struct {
	Pending[int]
	req wire.GetAllChildrenNumberRequest
}

func (op *getAllChildrenNumberOp) request() wire.Request { return &op.req }

func (op *getAllChildrenNumberOp) decode(r *jute.Reader) {
	var resp wire.GetAllChildrenNumberResponse
	resp.Decode(r)
	op.value = int(resp.TotalNumber)
}

// GetAllChildrenNumber returns how many znodes are below path, at any depth.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (c *Client) GetAllChildrenNumber(ctx context.Context, path string) (int, error) {
	return read(ctx, func() *Pending[int] { return c.Async().GetAllChildrenNumber(ctx, path) })
}

// GetAllChildrenNumber is Client.GetAllChildrenNumber without waiting for the
// answer.
func (a Async) GetAllChildrenNumber(ctx context.Context, path string) *Pending[int] {
	c := a.c
	op := new(getAllChildrenNumberOp)
	if c.prepare(&op.call, wire.OpGetAllChildrenNumber, path, false) {
		op.req = wire.GetAllChildrenNumberRequest{Path: op.full}
		c.submit(ctx, op)
	}
	return &op.Pending
}
