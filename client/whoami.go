package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

type whoAmIOp struct {
	Pending[[]ID]
	req wire.EmptyRequest
}

func (op *whoAmIOp) request() wire.Request { return &op.req }

func (op *whoAmIOp) decode(r *jute.Reader) {
	var resp wire.WhoAmIResponse
	resp.Decode(r)
	op.value = make([]ID, len(resp.ClientInfo))
	for i, info := range resp.ClientInfo {
		op.value[i] = ID{Scheme: info.AuthScheme, ID: info.User}
	}
}

// WhoAmI returns the identities that the server knows of this connection: its
// address, and the user names of what AddAuth has proved, without hashes.
// ZooKeeper has it since 3.7.
func (c *Client) WhoAmI(ctx context.Context) ([]ID, error) {
	return read(ctx, func() *Pending[[]ID] { return c.Async().WhoAmI(ctx) })
}

// WhoAmI is Client.WhoAmI without waiting for the answer.
func (a Async) WhoAmI(ctx context.Context) *Pending[[]ID] {
	c := a.c
	op := new(whoAmIOp)
	c.prepareAny(&op.call, wire.OpWhoAmI, "")
	c.submit(ctx, op)
	return &op.Pending
}
