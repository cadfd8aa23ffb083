package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

type getEphemeralsOp struct {
	Pending[[]string]
	req wire.GetEphemeralsRequest
}

func (op *getEphemeralsOp) request() wire.Request { return &op.req }

func (op *getEphemeralsOp) decode(r *jute.Reader) {
	var resp wire.GetEphemeralsResponse
	resp.Decode(r)
	op.value = resp.Ephemerals
	for i, path := range op.value {
		op.value[i] = op.c.rel(path)
	}
}

// GetEphemerals returns the paths of this session's ephemerals that start with
// prefix. The prefix is one of the text and not of the path's names: "/a"
// matches "/ab". "" and "/" match all.
func (c *Client) GetEphemerals(ctx context.Context, prefix string) ([]string, error) {
	return read(ctx, func() *Pending[[]string] { return c.Async().GetEphemerals(ctx, prefix) })
}

// GetEphemerals is Client.GetEphemerals without waiting for the answer.
func (a Async) GetEphemerals(ctx context.Context, prefix string) *Pending[[]string] {
	c := a.c
	op := new(getEphemeralsOp)
	c.prepareAny(&op.call, wire.OpGetEphemerals, prefix)
	if prefix == "" {
		prefix = "/"
	}
	op.req = wire.GetEphemeralsRequest{PrefixPath: c.chroot + prefix}
	c.submit(ctx, op)
	return &op.Pending
}
