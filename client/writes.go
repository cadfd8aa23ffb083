package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// CreateReply is the answer to the create operations.
type CreateReply struct {
	Path string // with the sequence number, if any
	Stat Stat
}

// Create creates a znode and returns its path, with the sequence number if mode is
// sequential, and its Stat. Without an ACL the znode gets that of WithDefaultACL, by
// default one that lets everyone do everything. The data must not be modified before
// Create returns. Use CreateTTL for modes with a time to live, and CreateProtected for a
// znode that must be neither orphaned nor created twice when a connection breaks.
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
	code := wire.OpCreate2
	if mode == Container {
		code = wire.OpCreateContainer
	}
	acl = a.c.aclOrDefault(acl)
	o := newOp[wire.CreateRequest](a.c, code, createReply)
	o.req = wire.CreateRequest{Path: o.newPath(path, mode), Data: data, ACL: acl, Mode: mode}
	o.size += len(data) + aclSize(acl)
	o.err = cmp.Or(o.err, checkMode(mode))
	return o.submit(ctx)
}

func createReply(p *call, r *jute.Reader) CreateReply {
	var resp wire.Create2Response
	resp.Decode(r)
	return CreateReply{Path: p.c.rel(resp.Path), Stat: resp.Stat}
}

// checkMode refuses modes that Create does not support.
func checkMode(mode Mode) error {
	if !mode.Valid() || mode.TTL() {
		return fmt.Errorf("mode %d: want 0 to 4, or CreateTTL: %w", mode, ErrBadArguments)
	}
	return nil
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
	acl = a.c.aclOrDefault(acl)
	o := newOp[wire.CreateTTLRequest](a.c, wire.OpCreateTTL, createReply)
	o.req = wire.CreateTTLRequest{
		Path: o.newPath(path, mode), Data: data, ACL: acl, Mode: mode, TTLMillis: ttl.Milliseconds(),
	}
	o.size += len(data) + aclSize(acl)
	o.err = cmp.Or(o.err, checkTTL(mode, ttl))
	return o.submit(ctx)
}

// maxTTLMillis is the largest TTL that fits into ZooKeeper's 40 bits for it
// (EphemeralType.TTL).
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

// Set replaces the data of a znode if its version is the given one, or if that
// is AnyVersion, and returns the new Stat. The data must not be modified before
// Set returns; nil stores null.
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
	o := newOp[wire.SetDataRequest](a.c, wire.OpSetData, setReply)
	o.req = wire.SetDataRequest{Path: o.fullPath(path), Data: data, Version: version}
	o.size += len(data)
	return o.submit(ctx)
}

func setReply(_ *call, r *jute.Reader) Stat {
	var resp wire.SetDataResponse
	resp.Decode(r)
	return resp.Stat
}

// Delete deletes a znode without children if its version is the given one, or
// if that is AnyVersion.
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
	o := newOp[wire.DeleteRequest](a.c, wire.OpDelete, noResult)
	o.req = wire.DeleteRequest{Path: o.fullPath(path), Version: version}
	return o.submit(ctx)
}

// EnsurePath creates a znode without data, and its missing ancestors. The mode
// is Persistent, or Container for znodes that the server may delete again after
// their last child.
//
// Errors: those of Create but ErrNodeExists. It may be called again after
// ErrOutcomeUnknown.
func (c *Client) EnsurePath(ctx context.Context, path string, mode Mode, acl ...ACL) error {
	if path == "/" && c.chroot == "" {
		return nil
	}
	_, _, err := c.Create(ctx, path, nil, mode, acl...)
	switch {
	case err == nil || errors.Is(err, ErrNodeExists):
		return nil
	case !errors.Is(err, ErrNoNode) || path == "/":
		return err
	}
	if err := c.EnsurePath(ctx, znode.Parent(path), mode, acl...); err != nil {
		return err
	}
	_, _, err = c.Create(ctx, path, nil, mode, acl...)
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return err
}
