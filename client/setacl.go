package client

import (
	"context"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

type setACLOp struct {
	Pending[Stat]
	req wire.SetACLRequest
}

func (op *setACLOp) request() wire.Request { return &op.req }

func (op *setACLOp) decode(r *jute.Reader) {
	var resp wire.SetACLResponse
	resp.Decode(r)
	op.value = resp.Stat
}

// SetACL replaces the ACL of a znode, if its aversion is the given one or that
// is AnyVersion, and returns the new Stat. ACLs are not inherited.
//
// Errors: ErrNoNode, ErrBadVersion, ErrInvalidACL, ErrNoAuth (ADMIN),
// ErrOutcomeUnknown.
func (c *Client) SetACL(
	ctx context.Context, path string, acl []ACL, aversion Version,
) (Stat, error) {
	return write(ctx, c.Async().SetACL(ctx, path, acl, aversion))
}

// SetACL is Client.SetACL without waiting for the answer.
func (a Async) SetACL(
	ctx context.Context, path string, acl []ACL, aversion Version,
) *Pending[Stat] {
	c := a.c
	op := new(setACLOp)
	op.size = aclSize(acl)
	if c.prepare(&op.call, wire.OpSetACL, path, false) {
		op.req = wire.SetACLRequest{Path: op.full, ACL: acl, Version: aversion}
		c.submit(ctx, op)
	}
	return &op.Pending
}
