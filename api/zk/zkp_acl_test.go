package zk_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func (c *client) auth(scheme, credentials string) {
	c.t.Helper()
	c.want(znode.OK, wire.OpAuth, &wire.AuthRequest{Scheme: scheme, Auth: []byte(credentials)})
}

func one(p znode.Perms, scheme, id string) []znode.ACL {
	return []znode.ACL{{Perms: p, ID: znode.ID{Scheme: scheme, ID: id}}}
}

func TestZKP_Auth_ReplyEchoesTheXid(t *testing.T) {
	c := start(t).connect()
	for _, xid := range []wire.Xid{wire.XidAuth, 17, -8} { // go-zookeeper sends positive ones
		c.raw(wire.AppendRequest(nil, wire.RequestHeader{Xid: xid, Type: wire.OpAuth},
			&wire.AuthRequest{Scheme: "digest", Auth: []byte("ann:pw")}))
		c.reply(xid, wire.OpAuth)
	}
}

// 85. A failure is reported, then the connection closed.
func TestZKP_Auth_FailureCloses(t *testing.T) {
	k := start(t)
	for _, q := range []wire.AuthRequest{
		{Scheme: "nonesuch", Auth: []byte("x")}, {Scheme: "sasl", Auth: []byte("x")},
		{Scheme: "world", Auth: []byte("anyone")}, {Scheme: "super", Auth: []byte("")},
		{Scheme: "digest"}, {Scheme: ""},
	} {
		c := k.connect()
		xid := c.send(wire.OpAuth, &q)
		c.send(wire.OpPing, nil)
		if h, _ := c.reply(xid, wire.OpAuth); h.Err != znode.ErrAuthFailed || h.Zxid != 0 {
			t.Errorf("%s: reply %+v, want AUTHFAILED and zxid 0", q.Scheme, h)
		}
		c.closed()
	}
}

// Credentials without end cost the client its connection, not our memory.
func TestZKP_Auth_IdentitiesAreBounded(t *testing.T) {
	c := start(t).connect()
	for range 1000 {
		c.auth("digest", "the-same-user:again-and-again") // counts once
	}
	for i := range 100 {
		h, _ := c.call(wire.OpAuth, &wire.AuthRequest{
			Scheme: "digest", Auth: append(make([]byte, 1000), byte(i), ':')})
		if h.Err == znode.ErrAuthFailed {
			c.closed()
			return
		}
	}
	t.Error("100 kB of identities were taken")
}

// 84. sasl without SASL.
func TestZKP_Auth_SASLIsAnsweredWithNull(t *testing.T) {
	c := start(t).connect()
	h, x := c.want(znode.OK, wire.OpSASL, &wire.SASLRequest{Token: []byte{}})
	if h.Zxid != 0 || x.(*wire.SASLResponse).Token != nil {
		t.Errorf("reply %+v, %+v; want zxid 0 and no token", h, x)
	}
	c.fence()
}

// 74. Which permission each operation asks for.
func TestZKP_ACL_NeededPermissions(t *testing.T) {
	k := start(t)
	admin := k.connect()
	admin.auth("digest", "super:test") // 81.
	for _, x := range []struct {
		name string
		need znode.Perms // of /n
		op   wire.OpCode
		body wire.Request
	}{
		{"getData", znode.PermRead, wire.OpGetData, &wire.GetDataRequest{Path: "/n"}},
		{"exists", znode.PermRead, wire.OpExists, &wire.ExistsRequest{Path: "/n"}},
		{"getChildren", znode.PermRead, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/n"}},
		{"getChildren2", znode.PermRead, wire.OpGetChildren2, &wire.GetChildrenRequest{Path: "/n"}},
		{"getAllChildrenNumber", znode.PermRead, wire.OpGetAllChildrenNumber,
			&wire.GetAllChildrenNumberRequest{Path: "/n"}},
		{"getACL", znode.PermRead | znode.PermAdmin, wire.OpGetACL, &wire.GetACLRequest{Path: "/n"}},
		{"setData", znode.PermWrite, wire.OpSetData, set("/n")},
		{"create", znode.PermCreate, wire.OpCreate, create("/n/x", "", znode.Persistent)},
		{"delete", znode.PermDelete, wire.OpDelete, del("/n/d")},
		{"setACL", znode.PermAdmin, wire.OpSetACL,
			&wire.SetACLRequest{Path: "/n", ACL: znode.OpenACL, Version: -1}},
	} {
		for _, have := range []znode.Perms{x.need, znode.PermAll &^ x.need} {
			admin.want(znode.OK, wire.OpCreate, create("/n", "", znode.Persistent))
			admin.create("/n/d", "")
			admin.want(znode.OK, wire.OpSetACL, &wire.SetACLRequest{
				Path: "/n", ACL: one(have, "world", "anyone"), Version: -1})
			want := znode.OK
			if have&x.need == 0 {
				want = znode.ErrNoAuth
			}
			c := k.connect()
			if h, _ := c.call(x.op, x.body); h.Err != want {
				t.Errorf("%s with %s: %s, want %s", x.name, have, h.Err.Name(), want.Name())
			}
			admin.call(wire.OpDelete, del("/n/x"))
			admin.call(wire.OpDelete, del("/n/d"))
			admin.want(znode.OK, wire.OpDelete, del("/n"))
		}
	}
	c := k.connect()
	admin.want(znode.OK, wire.OpCreate,
		&wire.CreateRequest{Path: "/none", ACL: one(0, "world", "anyone")})
	c.want(znode.OK, wire.OpSync, &wire.SyncRequest{Path: "/none"})
	c.want(znode.OK, wire.OpAddWatch, &wire.AddWatchRequest{Path: "/none"})
	c.want(znode.OK, wire.OpSetWatches, &wire.SetWatchesRequest{
		RelativeZxid: 1 << 40, DataWatches: []string{"/none"}})
}

// 75. Hashes are for administrators.
func TestZKP_ACL_DigestIsMasked(t *testing.T) {
	k := start(t)
	c, d := k.connect(), k.connect()
	c.auth("digest", "ann:pw")
	acl := append(one(znode.PermAll, "auth", ""), one(znode.PermRead, "world", "anyone")...)
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: acl}) // 78.
	get := func(c *client) string {
		return wantOK[*wire.GetACLResponse](c, wire.OpGetACL, &wire.GetACLRequest{Path: "/a"}).ACL[0].ID.ID
	}
	if id := get(c); id != "ann:"+annHash {
		t.Errorf("%q, want %q", id, "ann:"+annHash)
	}
	if id := get(d); id != "ann:x" {
		t.Errorf("%q, want %q", id, "ann:x")
	}
	d.auth("digest", "ann:pw")
	if id := get(d); id != "ann:"+annHash {
		t.Errorf("%q, want %q", id, "ann:"+annHash)
	}
}

const annHash = "RYbu6l5aZwqon8VWmkcGvezdzfc=" // of ann:pw

// 77.-79. and 82. ACLs that are not well-formed.
func TestZKP_ACL_Invalid(t *testing.T) {
	c := start(t).connect()
	for _, id := range []znode.ID{
		{Scheme: "auth"}, {Scheme: "world", ID: "someone"}, {Scheme: "super", ID: ""},
		{Scheme: "digest", ID: "u:"}, {Scheme: "digest", ID: "u"}, {Scheme: "nonesuch", ID: "x"},
		{Scheme: "ip", ID: "10.0.0.0/33"}, {Scheme: "ip", ID: "::ffff:10.0.0.1"}, {},
	} {
		c.want(znode.ErrInvalidACL, wire.OpCreate, &wire.CreateRequest{
			Path: "/a", ACL: []znode.ACL{{Perms: znode.PermAll, ID: id}}})
	}
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{ // any number is a permission
		Path: "/a", ACL: one(1<<20, "digest", ":h")})
}

// 82. Every connection has its address from the start.
func TestZKP_ACL_IPIdentity(t *testing.T) {
	c := start(t).connect()
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{
		Path: "/in", ACL: one(znode.PermAll, "ip", "127.0.0.0/8")})
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{
		Path: "/out", ACL: one(znode.PermAll, "ip", "10.0.0.1")})
	c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/in"})
	c.want(znode.ErrNoAuth, wire.OpGetData, &wire.GetDataRequest{Path: "/out"})
	c.auth("ip", "")
}

// 80. and 87. Several identities on one connection, shown without hashes.
func TestZKP_WhoAmI_ListsUsers(t *testing.T) {
	c := start(t).connect()
	c.auth("digest", "ann:pw")
	c.auth("digest", "bob:pw")
	c.auth("digest", "bob:pw")
	c.auth("digest", "nocolon")
	c.auth("digest", "super:test")
	x := wantOK[*wire.WhoAmIResponse](c, wire.OpWhoAmI, nil)
	want := []wire.ClientInfo{
		{AuthScheme: "ip", User: "127.0.0.1"}, {AuthScheme: "digest", User: "ann"},
		{AuthScheme: "digest", User: "bob"}, {AuthScheme: "digest", User: "nocolon"},
		{AuthScheme: "digest", User: "super"}, {AuthScheme: "super", User: ""},
	}
	if !slices.Equal(x.ClientInfo, want) {
		t.Errorf("identities %+v, want %+v", x.ClientInfo, want)
	}
}

// One anonymous client with 440 identities and an ACL of "auth" crashed all servers. It gets an error, and its
// connection stays open.
func TestRegression_LongACL_ByAuthIsRefused(t *testing.T) {
	c := start(t).connect()
	for i := range 440 {
		c.auth("digest", fmt.Sprint(":", i))
	}
	var list []znode.ACL
	for i := range 4000 {
		list = append(list, znode.ACL{Perms: znode.Perms(i), ID: znode.AuthIDs})
	}
	c.want(znode.ErrInvalidACL, wire.OpCreate, &wire.CreateRequest{Path: "/nowhere/x", ACL: list})
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: list[:2]})
	c.want(znode.ErrInvalidACL, wire.OpSetACL, &wire.SetACLRequest{Path: "/a", ACL: list, Version: -1})
	h, _ := c.call(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/b", ACL: list}}}})
	if h.Err != znode.ErrInvalidACL {
		t.Errorf("multi: got %s, want INVALIDACL", h.Err.Name())
	}
	c.fence()
}
