package client

import "github.com/zk-lite/zk-lite/internal/wire"

// closeOp ends the session.
type closeOp struct {
	Pending[struct{}]
	quiet
	req wire.EmptyRequest
}

func newCloseOp(c *Client) *closeOp {
	op := new(closeOp)
	c.prepareAny(&op.call, wire.OpCloseSession, "")
	op.internal = true
	return op
}

func (op *closeOp) request() wire.Request { return &op.req }
