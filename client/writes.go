package client

import (
	"context"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// CreateReply is the answer to the create operations.
type CreateReply struct {
	Path string // with the sequence number, if any
	Stat Stat
}

type createOp struct {
	Pending[CreateReply]
	req wire.CreateRequest
	ttl *wire.CreateTTLRequest // for createTTL
}

func (op *createOp) request() wire.Request {
	if op.ttl != nil {
		return op.ttl
	}
	return &op.req
}

func (op *createOp) decode(r *jute.Reader) {
	var resp wire.Create2Response
	resp.Decode(r)
	op.value = CreateReply{Path: op.c.rel(resp.Path), Stat: resp.Stat}
}

// aclSize is an estimate of the bytes of a list in a request.
func aclSize(acl []ACL) int {
	n := 0
	for i := range acl {
		n += 12 + len(acl[i].ID.Scheme) + len(acl[i].ID.ID)
	}
	return n
}

// aclOrDefault is the list to send.
func (c *Client) aclOrDefault(acl []ACL) []ACL {
	if len(acl) == 0 {
		return c.cfg.acl
	}
	return acl
}

// Create makes a znode and returns its path, with the sequence number if mode
// is sequential, and its Stat. Without an ACL the znode gets that of WithDefaultACL;
// without that option everybody may do everything. The data must not be modified before
// Create returns. Use CreateTTL for modes with a time to live, and CreateProtected for a
// znode that must not be left behind or made twice when a connection breaks.
//
// Errors: ErrNodeExists, ErrNoNode (the parent), ErrNoAuth (CREATE on the
// parent), ErrNoChildrenForEphemeral, ErrInvalidACL, ErrQuotaExceeded,
// ErrOutcomeUnknown.
func (c *Client) Create(
	ctx context.Context, path string, data []byte, mode Mode, acl ...ACL,
) (string, Stat, error) {
	v, err := write(ctx, c.Async().Create(ctx, path, data, mode, acl...))
	return v.Path, v.Stat, err
}

// Create is Client.Create without waiting for the answer. The data must not be
// modified before it has come.
func (a Async) Create(
	ctx context.Context, path string, data []byte, mode Mode, acl ...ACL,
) *Pending[CreateReply] {
	c := a.c
	op := new(createOp)
	code := wire.OpCreate2
	if mode == Container {
		code = wire.OpCreateContainer
	}
	acl = c.aclOrDefault(acl)
	op.size = len(data) + aclSize(acl)
	if !c.prepare(&op.call, code, path, mode.Sequential()) {
		return &op.Pending
	}
	if !mode.Valid() || mode.TTL() {
		op.complete(fmt.Errorf("mode %d: want 0 to 4, or CreateTTL: %w", mode, ErrBadArguments))
		return &op.Pending
	}
	op.req = wire.CreateRequest{Path: op.full, Data: data, ACL: acl, Mode: mode}
	c.submit(ctx, op)
	return &op.Pending
}

// CreateTTL is Create for a znode that the server deletes when it has no
// children and has not been changed for ttl, which is at least a millisecond
// and at most about 34 years. The mode is PersistentTTL or
// PersistentSequentialTTL.
//
// Errors: those of Create; ErrUnimplemented if the server's extendedTypesEnabled
// is off.
func (c *Client) CreateTTL(
	ctx context.Context, path string, data []byte, mode Mode, ttl time.Duration, acl ...ACL,
) (string, Stat, error) {
	v, err := write(ctx, c.Async().CreateTTL(ctx, path, data, mode, ttl, acl...))
	return v.Path, v.Stat, err
}

// CreateTTL is Client.CreateTTL without waiting for the answer. The data must not
// be modified before it has come.
func (a Async) CreateTTL(
	ctx context.Context, path string, data []byte, mode Mode, ttl time.Duration, acl ...ACL,
) *Pending[CreateReply] {
	c := a.c
	op := new(createOp)
	acl = c.aclOrDefault(acl)
	op.size = len(data) + aclSize(acl)
	if !c.prepare(&op.call, wire.OpCreateTTL, path, mode.Sequential()) {
		return &op.Pending
	}
	if err := checkTTL(mode, ttl); err != nil {
		op.complete(err)
		return &op.Pending
	}
	op.ttl = &wire.CreateTTLRequest{
		Path: op.full, Data: data, ACL: acl, Mode: mode, TTLMillis: ttl.Milliseconds(),
	}
	c.submit(ctx, op)
	return &op.Pending
}

// maxTTLMillis is what fits into the 40 bits that ZooKeeper has for a TTL
// (EphemeralType.TTL), once server ids have taken theirs.
const maxTTLMillis = 1<<40 - 1

func checkTTL(mode Mode, ttl time.Duration) error {
	if !mode.TTL() {
		return fmt.Errorf("mode %d: want PersistentTTL or PersistentSequentialTTL: %w",
			mode, ErrBadArguments)
	}
	if ms := ttl.Milliseconds(); ms < 1 || ms > maxTTLMillis {
		return fmt.Errorf("TTL %v: want 1ms to %dms: %w", ttl, int64(maxTTLMillis), ErrBadArguments)
	}
	return nil
}
