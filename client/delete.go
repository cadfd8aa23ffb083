package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/wire"
)

type deleteOp struct {
	Pending[struct{}]
	quiet
	req wire.DeleteRequest
}

func (op *deleteOp) request() wire.Request { return &op.req }

// Delete deletes a znode that has no children, if its version is the given one
// or that is AnyVersion.
//
// Errors: ErrNoNode, ErrBadVersion, ErrNotEmpty, ErrNoAuth (DELETE on the
// parent), ErrOutcomeUnknown.
func (c *Client) Delete(ctx context.Context, path string, version Version) error {
	_, err := write(ctx, c.Async().Delete(ctx, path, version))
	return err
}

// Delete is Client.Delete without waiting for the answer.
func (a Async) Delete(
	ctx context.Context, path string, version Version,
) *Pending[struct{}] {
	c := a.c
	op := new(deleteOp)
	if c.prepare(&op.call, wire.OpDelete, path, false) {
		op.req = wire.DeleteRequest{Path: op.full, Version: version}
		c.submit(ctx, op)
	}
	return &op.Pending
}
