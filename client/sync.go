package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/wire"
)

type syncOp struct {
	Pending[struct{}]
	quiet
	req wire.SyncRequest
}

func (op *syncOp) request() wire.Request { return &op.req }

// Sync waits until the server has caught up with the leader, so that later reads
// see every write that was acknowledged to anybody before. The path does not
// matter to ZooKeeper, which also does not ask a majority: a deposed leader can
// still answer it.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := read(ctx, func() *Pending[struct{}] { return c.Async().Sync(ctx, path) })
	return err
}

// Sync is Client.Sync without waiting for the answer: reads that are submitted
// behind it see what it promises.
func (a Async) Sync(ctx context.Context, path string) *Pending[struct{}] {
	c := a.c
	op := new(syncOp)
	if c.prepare(&op.call, wire.OpSync, path, false) {
		op.req = wire.SyncRequest{Path: op.full}
		c.submit(ctx, op)
	}
	return &op.Pending
}
