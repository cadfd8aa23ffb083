package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

type setDataOp struct {
	Pending[Stat]
	req wire.SetDataRequest
}

func (op *setDataOp) request() wire.Request { return &op.req }

func (op *setDataOp) decode(r *jute.Reader) {
	var resp wire.SetDataResponse
	resp.Decode(r)
	op.value = resp.Stat
}

// Set replaces the data of a znode, if its version is the given one or that is
// AnyVersion, and returns the new Stat. The data must not be modified before Set
// returns; nil stores null.
//
// Errors: ErrNoNode, ErrBadVersion, ErrNoAuth (WRITE), ErrQuotaExceeded,
// ErrOutcomeUnknown.
func (c *Client) Set(
	ctx context.Context, path string, data []byte, version Version,
) (Stat, error) {
	return write(ctx, c.Async().Set(ctx, path, data, version))
}

// Set is Client.Set without waiting for the answer. The data must not be modified
// before it has come.
func (a Async) Set(
	ctx context.Context, path string, data []byte, version Version,
) *Pending[Stat] {
	c := a.c
	op := new(setDataOp)
	op.size = len(data)
	if c.prepare(&op.call, wire.OpSetData, path, false) {
		op.req = wire.SetDataRequest{Path: op.full, Data: data, Version: version}
		c.submit(ctx, op)
	}
	return &op.Pending
}
