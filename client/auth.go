package client

import (
	"bytes"
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

type authOp struct {
	Pending[struct{}]
	req wire.AuthRequest
}

func (op *authOp) request() wire.Request { return &op.req }

func (op *authOp) decode(*jute.Reader) {}

// settledLocked keeps what the server has accepted, for later connections.
func (op *authOp) settledLocked(h wire.ReplyHeader) {
	if h.Err != znode.OK {
		return
	}
	c := op.c
	for _, a := range c.auth {
		if a.scheme == op.req.Scheme && bytes.Equal(a.auth, op.req.Auth) {
			return
		}
	}
	// The connecting goroutine may hold the old slice: never modify it.
	c.auth = append(c.auth[:len(c.auth):len(c.auth)], credential{op.req.Scheme, op.req.Auth})
}

// AddAuth proves an identity, such as "digest" with "user:password", on this and
// all later connections. Several can be added. Operations that were submitted
// later have the new identity.
//
// Errors: ErrAuthFailed, after which the server closes the connection.
func (c *Client) AddAuth(ctx context.Context, scheme string, auth []byte) error {
	_, err := read(ctx, func() *Pending[struct{}] { return c.Async().AddAuth(ctx, scheme, auth) })
	return err
}

// AddAuth is Client.AddAuth without waiting for the answer.
func (a Async) AddAuth(
	ctx context.Context, scheme string, auth []byte,
) *Pending[struct{}] {
	c := a.c
	op := new(authOp)
	c.prepareAny(&op.call, wire.OpAuth, "")
	op.size += len(scheme) + len(auth)
	op.req = wire.AuthRequest{Scheme: scheme, Auth: bytes.Clone(auth)}
	c.submit(ctx, op)
	return &op.Pending
}

// takeAuthLocked takes the oldest auth that was sent on l out of the middle of
// the queue, or returns nil.
func (c *Client) takeAuthLocked(l *link, xid wire.Xid) operation {
	if xid != wire.XidAuth {
		return nil
	}
	for i := 0; c.queue.first+uint64(i) < l.taken; i++ {
		if op := c.queue.at(i); op.base().op == wire.OpAuth {
			c.queue.remove(op.base())
			l.taken--
			return op
		}
	}
	return nil
}
