package client

import (
	"bytes"
	"context"
	"crypto/sha1" // not for secrecy: the digest scheme is defined with it
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// OpenACL returns the list that grants everything to everyone.
func OpenACL() []ACL { return []ACL{{Perms: PermAll, ID: znode.Anyone}} }

// ReadACL returns the list that lets everyone read and no one do more.
func ReadACL() []ACL { return []ACL{{Perms: PermRead, ID: znode.Anyone}} }

// CreatorACL returns the list that grants everything to the identities that the
// connection has proved with WithAuth or AddAuth, and nothing to others. A
// connection that has proved none gets ErrInvalidACL.
func CreatorACL() []ACL { return []ACL{{Perms: PermAll, ID: znode.AuthIDs}} }

// DigestACL returns the list that grants perms to those who know the user's
// password, and nothing to others. A client may set it without being that user.
// Join lists with append:
//
//	acl, err := client.DigestACL(client.PermAll, "alice", "secret")
//	acl = append(acl, client.ReadACL()...)
//
// Errors: ErrBadArguments, as for DigestID.
func DigestACL(perms Perms, user, password string) ([]ACL, error) {
	id, err := DigestID(user, password)
	if err != nil {
		return nil, err
	}
	return []ACL{{Perms: perms, ID: id}}, nil
}

// DigestID returns the identity that WithAuth("digest", []byte("user:password"))
// proves: scheme digest, and the user's name followed by the base64 of the SHA-1
// of user:password (ZooKeeper's DigestAuthenticationProvider). The hash is not
// salted: a client that may read the list can guess passwords, so use long ones.
//
// Errors: ErrBadArguments if the user's name is empty or contains a colon, where
// the servers would split it.
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
	o := newOp[wire.GetACLRequest](a.c, wire.OpGetACL, aclReply)
	o.req = wire.GetACLRequest{Path: o.fullPath(path)}
	return o.submit(ctx)
}

func aclReply(_ *call, r *jute.Reader) ACLReply {
	var resp wire.GetACLResponse
	resp.Decode(r)
	// A decoded list may be shared.
	return ACLReply{ACL: slices.Clone(resp.ACL), Stat: resp.Stat}
}

// SetACL replaces the ACL of a znode if its aversion is the given one, or if
// that is AnyVersion, and returns the new Stat. ACLs are not inherited.
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
	o := newOp[wire.SetACLRequest](a.c, wire.OpSetACL, setACLReply)
	o.req = wire.SetACLRequest{Path: o.fullPath(path), ACL: acl, Version: aversion}
	o.size += aclSize(acl)
	return o.submit(ctx)
}

func setACLReply(_ *call, r *jute.Reader) Stat {
	var resp wire.SetACLResponse
	resp.Decode(r)
	return resp.Stat
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

// AddAuth proves an identity, such as "digest" with "user:password", on this and
// all later connections. Several can be added. Operations that were submitted
// later have the new identity.
//
// Errors: ErrAuthFailed, after which the server closes the connection. SASL is for
// new connections (WithAuth).
func (c *Client) AddAuth(ctx context.Context, scheme string, auth []byte) error {
	_, err := read(ctx, func() *Pending[struct{}] { return c.Async().AddAuth(ctx, scheme, auth) })
	return err
}

// AddAuth is Client.AddAuth without waiting for the answer.
func (a Async) AddAuth(
	ctx context.Context, scheme string, auth []byte,
) *Pending[struct{}] {
	auth = bytes.Clone(auth)
	o := newOp[wire.AuthRequest](a.c, wire.OpAuth, noResult)
	o.req = wire.AuthRequest{Scheme: scheme, Auth: auth}
	o.size += len(scheme) + len(auth)
	o.settledLocked = func(code znode.Error) {
		if code == znode.OK {
			a.c.keepAuthLocked(credential{scheme, auth})
		}
	}
	return o.submit(ctx)
}

// keepAuthLocked stores an accepted credential for later connections.
func (c *Client) keepAuthLocked(accepted credential) {
	for _, a := range c.auth {
		if a.scheme == accepted.scheme && bytes.Equal(a.auth, accepted.auth) {
			return
		}
	}
	// The connecting goroutine may hold the old slice: never modify it.
	c.auth = append(c.auth[:len(c.auth):len(c.auth)], accepted)
}

// takeAuthLocked removes the oldest auth that was sent on l from the middle of
// the queue, or returns nil.
func (c *Client) takeAuthLocked(l *link, xid wire.Xid) operation {
	if xid != wire.XidAuth {
		return nil
	}
	for i := 0; c.queue.First()+uint64(i) < l.taken; i++ {
		if op := c.queue.At(i); op.base().op == wire.OpAuth {
			c.queue.Delete(i)
			l.taken--
			return op
		}
	}
	return nil
}

// WhoAmI returns the identities of this connection at the server: its address,
// and the user names that AddAuth has proved, without hashes. ZooKeeper has it
// since 3.7.
func (c *Client) WhoAmI(ctx context.Context) ([]ID, error) {
	return read(ctx, func() *Pending[[]ID] { return c.Async().WhoAmI(ctx) })
}

// WhoAmI is Client.WhoAmI without waiting for the answer.
func (a Async) WhoAmI(ctx context.Context) *Pending[[]ID] {
	return newOp[wire.EmptyRequest](a.c, wire.OpWhoAmI, identitiesReply).submit(ctx)
}

func identitiesReply(_ *call, r *jute.Reader) []ID {
	var resp wire.WhoAmIResponse
	resp.Decode(r)
	ids := make([]ID, len(resp.ClientInfo))
	for i, info := range resp.ClientInfo {
		ids[i] = ID{Scheme: info.AuthScheme, ID: info.User}
	}
	return ids
}
