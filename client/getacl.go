package client

import (
	"context"
	"slices"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// ACLReply is the answer to getACL.
type ACLReply struct {
	ACL  []ACL
	Stat Stat // Stat.Aversion is what SetACL compares
}

type getACLOp struct {
	Pending[ACLReply]
	req wire.GetACLRequest
}

func (op *getACLOp) request() wire.Request { return &op.req }

func (op *getACLOp) decode(r *jute.Reader) {
	var resp wire.GetACLResponse
	resp.Decode(r)
	// A decoded list may be shared.
	op.value = ACLReply{ACL: slices.Clone(resp.ACL), Stat: resp.Stat}
}

// GetACL returns the ACL and the Stat of a znode. Without the permission ADMIN
// the hashes of digest identities are masked.
//
// Errors: ErrNoNode, ErrNoAuth (READ or ADMIN).
func (c *Client) GetACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	v, err := read(ctx, func() *Pending[ACLReply] { return c.Async().GetACL(ctx, path) })
	return v.ACL, v.Stat, err
}

// GetACL is Client.GetACL without waiting for the answer.
func (a Async) GetACL(ctx context.Context, path string) *Pending[ACLReply] {
	c := a.c
	op := new(getACLOp)
	if c.prepare(&op.call, wire.OpGetACL, path, false) {
		op.req = wire.GetACLRequest{Path: op.full}
		c.submit(ctx, op)
	}
	return &op.Pending
}
