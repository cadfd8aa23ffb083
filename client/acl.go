package client

import (
	"bytes"
	"context"
	"crypto/sha1" // not for secrecy: it is what the scheme is made of
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// OpenACL returns the list with which everybody may do everything.
func OpenACL() []ACL { return []ACL{{Perms: PermAll, ID: znode.Anyone}} }

// ReadACL returns the list with which everybody may read, and nobody do more.
func ReadACL() []ACL { return []ACL{{Perms: PermRead, ID: znode.Anyone}} }

// CreatorACL returns the list that gives everything to the identities that the
// connection has proved with WithAuth or AddAuth, and nothing to others. A
// connection without any gets ErrInvalidACL.
func CreatorACL() []ACL { return []ACL{{Perms: PermAll, ID: znode.AuthIDs}} }

// DigestACL returns the list with which those who know the user's password have
// some permissions, and others none. It does not take being that user to set it.
// Lists are joined by append:
//
//	acl, err := client.DigestACL(client.PermAll, "alice", "secret")
//	acl = append(acl, client.ReadACL()...)
//
// Errors: ErrBadArguments, as DigestID.
func DigestACL(perms Perms, user, password string) ([]ACL, error) {
	id, err := DigestID(user, password)
	if err != nil {
		return nil, err
	}
	return []ACL{{Perms: perms, ID: id}}, nil
}

// DigestID returns the identity that WithAuth("digest", []byte("user:password"))
// proves: scheme digest, and the user's name with the base64 of the SHA-1 of
// user:password behind it (ZooKeeper's DigestAuthenticationProvider). The hash is
// not salted: a client that may read the list can try passwords, so use long ones.
//
// Errors: ErrBadArguments if the user's name is empty or has a colon, at which the
// servers would cut it.
func DigestID(user, password string) (ID, error) {
	if user == "" || strings.Contains(user, ":") {
		return ID{}, fmt.Errorf("digest identity of user %q: want a name without colons: %w",
			user, ErrBadArguments)
	}
	sum := sha1.Sum([]byte(user + ":" + password))
	return ID{Scheme: "digest", ID: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}, nil
}

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
	if c.prepare(&op.call, wire.OpSetACL, path, false) {
		op.size += aclSize(acl)
		op.req = wire.SetACLRequest{Path: op.full, ACL: acl, Version: aversion}
		c.submit(ctx, op)
	}
	return &op.Pending
}

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
