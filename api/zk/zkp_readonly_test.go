package zk_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// startReadOnly is a server that has a znode /a and is in read-only mode. back ends that.
func startReadOnly(t *testing.T, options ...option) (k *kit, first *client, back func()) {
	t.Helper()
	k = start(t, append(options, func(s *serverConfig, _ *zkConfig) { s.ReadOnly = true })...)
	first = k.connect()
	first.create("/a", "1")
	first.want(znode.OK, wire.OpCreate, &wire.CreateRequest{
		Path: "/secret", ACL: one(znode.PermAll, "digest", "ann:"+annHash)})
	k.cutOff()
	k.eventually("read-only mode", k.srv.ReadOnly.On)
	return k, first, func() { k.log.setStatus(func(s *consensus.Status) { s.Contact = 0 }) }
}

// cutOff parts the server from its leader.
func (k *kit) cutOff() {
	k.log.setStatus(func(s *consensus.Status) {
		s.Contact, s.Role, s.Leader = membership.NoContact, consensus.RoleNone, 0
	})
}

// allowing asks for a session, if need be a read-only one.
func allowing() wire.ConnectRequest {
	return wire.ConnectRequest{TimeoutMillis: briskMillis, HasReadOnly: true, ReadOnly: true}
}

// 95. Without a majority, clients that allow it get sessions of their own, which say what they are; all others are
// closed without an answer, as without the setting.
func TestZKP_ReadOnly_WhoIsTaken(t *testing.T) {
	k, first, back := startReadOnly(t)
	refused := func(what string, q wire.ConnectRequest) {
		t.Helper()
		if q.Password == nil {
			q.Password = make([]byte, 16)
		}
		c := k.dial()
		c.raw(frame(q.Append(nil)))
		if p, err := c.frames.Next(); err == nil {
			t.Errorf("%s is answered % x, want the end of the connection", what, p)
		}
	}
	refused("a client that does not allow it", wire.ConnectRequest{TimeoutMillis: 1000, HasReadOnly: true})
	refused("a client that does not know of it", wire.ConnectRequest{TimeoutMillis: 1000})
	q := allowing()
	q.LastZxidSeen = 1 << 40
	refused("a client that has seen more", q)
	q = allowing()
	q.SessionID, q.Password = first.id, first.password
	refused("a session of the log", q)
	q.SessionID = 2<<56 | 77
	refused("a session of another server", q)

	x := k.dial().shake(allowing())
	if !x.ReadOnly || x.TimeoutMillis != briskMillis || x.SessionID == 0 || x.SessionID == first.id {
		t.Errorf("response %+v, want a session of its own, read-only", x)
	}
	k.eventually("a read-only session is told of its end", func() bool { // as soon as housekeeping has seen the mode
		x := k.dial().shake(allowing())
		q.SessionID, q.Password = x.SessionID, slices.Clone(x.Password)
		c := k.dial()
		defer c.c.Close()
		c.raw(frame(q.Append(nil)))
		p, err := c.frames.Next()
		return err == nil && bytes.Equal(p[4:16], make([]byte, 12)) // neither timeout nor session
	})

	back()
	k.eventually("the server to serve", k.srv.Serving)
	q = allowing()
	q.SessionID, q.Password = first.id, first.password
	if got := k.dial().shake(q); got.SessionID != first.id || got.ReadOnly {
		t.Errorf("a session of the log after read-only mode: %+v, want %s for reading and writing", got, first.id)
	}
}

// 95. Changes, and sync, get NOTREADONLY; everything else is answered as always.
func TestZKP_ReadOnly_Requests(t *testing.T) {
	k, _, _ := startReadOnly(t)
	c := k.dial().connect(allowing())
	null := "x"
	multi := &wire.MultiRequest{Ops: []wire.MultiOp{
		{Type: wire.OpCheck, Request: &wire.CheckRequest{Path: "/a", Version: -1}}}}
	for _, x := range []struct {
		op   wire.OpCode
		body wire.Request
	}{
		{wire.OpCreate, create("/b", "", znode.Persistent)}, {wire.OpCreate2, create("/b", "", znode.Ephemeral)},
		{wire.OpCreateContainer, create("/b", "", znode.Container)},
		{wire.OpCreateTTL, &wire.CreateTTLRequest{Path: "/b", ACL: znode.OpenACL, Mode: 5, TTLMillis: 1}},
		{wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: -1}}, {wire.OpSetData, set("/a")},
		{wire.OpSetACL, &wire.SetACLRequest{Path: "/a", ACL: znode.OpenACL, Version: -1}},
		{wire.OpSync, &wire.SyncRequest{Path: "/a"}}, {wire.OpMulti, multi},
		{wire.OpDeleteContainer, &wire.DeleteContainerRequest{Path: "/a"}},
		{wire.OpReconfig, &wire.ReconfigRequest{LeavingServers: &null, CurConfigID: -1}},
	} {
		c.want(znode.ErrNotReadOnly, x.op, x.body)
	}
	for _, x := range []struct {
		op   wire.OpCode
		body wire.Request
	}{
		{wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true}}, {wire.OpExists, &wire.ExistsRequest{Path: "/a"}},
		{wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"}},
		{wire.OpGetChildren2, &wire.GetChildrenRequest{Path: "/", Watch: true}},
		{wire.OpGetACL, &wire.GetACLRequest{Path: "/a"}}, {wire.OpWhoAmI, nil},
		{wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/"}},
		{wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: "/"}},
		{wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: []wire.MultiOp{
			{Type: wire.OpGetData, Request: &wire.GetDataRequest{Path: "/a"}}}}},
		{wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.AddWatchPersistentRecursive}},
		{wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: 1 << 40, ChildWatches: []string{"/"}}},
		{wire.OpCheckWatches, &wire.RemoveWatchesRequest{Path: "/a", Type: znode.WatcherData}},
		{wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: "/a", Type: znode.WatcherData}},
	} {
		c.want(znode.OK, x.op, x.body)
	}
	c.want(znode.ErrNoAuth, wire.OpGetData, &wire.GetDataRequest{Path: "/secret"})
	c.auth("digest", "ann:pw")
	c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/secret"})
	c.fence()
	c.close()
}

// What four-letter words say.
func TestWord_ReadOnly(t *testing.T) {
	k, _, back := startReadOnly(t)
	if got := k.word("isro"); got != "ro" {
		t.Errorf("isro %q, want ro", got)
	}
	for word, wants := range map[string][]string{
		"srvr": {"\nREAD-ONLY mode; serving only read-only clients\n", "\nMode: read-only\n"},
		"stat": {"\nREAD-ONLY mode; serving only read-only clients\nClients:\n", "\nMode: read-only\n"},
		"mntr": {"\nzk_server_state\tread-only\n"},
		"conf": {"serverId="},
	} {
		got := k.word(word)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got\n%s\nwant %q", word, got, want)
			}
		}
		if strings.Contains(got, "zk_peer_state") {
			t.Errorf("%s names a state of the peer, which ZooKeeper's read-only server does not: %s", word, got)
		}
	}
	back()
	k.eventually("the server to serve", k.srv.Serving)
	if got := k.word("isro"); got != "rw" {
		t.Errorf("isro %q after read-only mode, want rw", got)
	}
}

// A client is sent away when the server serves again, and has missed nothing that it watches.
func TestZKP_ReadOnly_TheMajorityIsBack(t *testing.T) {
	k, _, back := startReadOnly(t)
	c := k.dial().connect(allowing())
	h, _ := c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true})
	back()
	c.closed()
	k.eventually("the server to serve", k.srv.Serving)
	k.connect().want(znode.OK, wire.OpSetData, set("/a"))

	q := allowing()
	q.LastZxidSeen = h.Zxid
	again := k.dial().connect(q) // with a new session, as Java's and C's clients do
	again.send(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: h.Zxid, DataWatches: []string{"/a"}})
	again.event(znode.EventDataChanged, "/a")
}

// Sessions of read-only mode take tokens of connectionMaxTokens, too.
func TestZKP_ReadOnly_Throttle(t *testing.T) {
	k, _, _ := startReadOnly(t, func(_ *serverConfig, z *zkConfig) {
		z.Throttle = zk.ConnectionThrottle{MaxTokens: 3, FillTime: patience, FillCount: 1}
	})
	for range 2 { // the first client has taken one
		k.dial().connect(allowing())
	}
	c := k.dial()
	q := allowing()
	q.Password = make([]byte, 16)
	c.raw(frame(q.Append(nil)))
	if p, err := c.frames.Next(); err == nil {
		t.Errorf("beyond connectionMaxTokens: % x, want the end of the connection", p)
	}
}
