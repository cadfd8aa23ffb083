package zk_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// 1. A client that has seen more than the server is closed without a response.
func TestZKP_Session_ClientAheadIsClosedSilently(t *testing.T) {
	log := &lines{}
	k := start(t, logTo(log))
	first := k.connect()
	first.create("/a", "")
	seen := znode.Zxid(1 << 40)
	c := k.dial()
	c.raw(frame((&wire.ConnectRequest{LastZxidSeen: seen, TimeoutMillis: 1000,
		Password: make([]byte, 16)}).Append(nil)))
	c.closed()
	c = k.dial()
	c.raw(frame((&wire.ConnectRequest{LastZxidSeen: seen, TimeoutMillis: 1000,
		SessionID: first.id, Password: first.password}).Append(nil)))
	c.closed()
	k.eventually("the line", func() bool { return strings.Contains(log.String(), "client has seen zxid") })
	if s := log.String(); strings.Count(s, "\n") != 1 { // for both
		t.Errorf("log %q", s)
	}
}

// 2. The trailing readOnly is echoed only if it was sent.
func TestZKP_Session_ReadOnlyByteIsEchoedOnlyIfSent(t *testing.T) {
	k := start(t)
	for _, has := range []bool{false, true} {
		c := k.dial()
		q := wire.ConnectRequest{TimeoutMillis: 1000, Password: make([]byte, 16), HasReadOnly: has}
		c.raw(frame(q.Append(nil)))
		p := c.next()
		if want := map[bool]int{false: 36, true: 37}[has]; len(p) != want {
			t.Errorf("readOnly sent %v: response of %d bytes, want %d", has, len(p), want)
		}
		if has && p[36] != 0 {
			t.Error("server calls itself read-only")
		}
	}
}

// 3. The timeout is clamped, and the clamped value returned.
func TestZKP_Session_TimeoutIsClamped(t *testing.T) {
	k := start(t)
	for asked, want := range map[int32]int32{-5: 200, 0: 200, 1: 200, 5000: 5000, 1 << 30: 40_000} {
		if x := k.dial().shake(wire.ConnectRequest{TimeoutMillis: asked}); x.TimeoutMillis != want {
			t.Errorf("asked for %d ms: have %d, want %d", asked, x.TimeoutMillis, want)
		}
	}
}

// 4. An unknown session, a wrong password and a password of a wrong length get
// a response of zeros, then the end.
func TestZKP_Session_WrongPasswordOrUnknownIsExpired(t *testing.T) {
	k := start(t)
	c := k.connect()
	wrong := bytes.Clone(c.password)
	wrong[3]++
	for name, q := range map[string]wire.ConnectRequest{
		"wrong password": {SessionID: c.id, Password: wrong},
		"unknown":        {SessionID: c.id + 77, Password: c.password},
		"short password": {SessionID: c.id, Password: []byte{1, 2}},
		"empty password": {SessionID: c.id, Password: []byte{}},
	} {
		q.TimeoutMillis, q.HasReadOnly = 1000, true
		d := k.dial()
		x := d.shake(q)
		if x.TimeoutMillis != 0 || x.SessionID != 0 || !bytes.Equal(x.Password, make([]byte, 16)) {
			t.Errorf("%s: response %+v, want no timeout, session or password", name, x)
		}
		d.closed()
	}
	c.fence() // the session's client is not disturbed by the attempts
}

// 6. and 16. A session that comes back by another connection closes the first.
func TestZKP_Session_ReconnectClosesTheOldConnection(t *testing.T) {
	k := start(t)
	c := k.connect()
	c.want(znode.OK, wire.OpCreate, create("/e", "", znode.Ephemeral))
	d := k.dial().connect(wire.ConnectRequest{
		TimeoutMillis: 30_000, SessionID: c.id, Password: c.password,
	})
	if d.id != c.id || !bytes.Equal(d.password, c.password) {
		t.Errorf("session %s became %s", c.id, d.id)
	}
	if d.timeout != 30_000 { // 7. with a new timeout
		t.Errorf("timeout %d, want 30000", d.timeout)
	}
	c.closed()
	if s := d.stat("/e"); s.EphemeralOwner != d.id {
		t.Errorf("stat %+v, want the owner %s", s, d.id)
	}
}

// 8. The server's id is in a session id's top byte.
func TestZKP_Session_IDNamesItsServer(t *testing.T) {
	k := start(t, func(s *serverConfig, _ *zkConfig) { s.ID = 200 })
	if c := k.connect(); uint64(c.id)>>56 != 200 || c.id >= 0 {
		t.Errorf("session id %s", c.id)
	}
}

// 9. and 22. Session creation and close take one zxid each, writes the next.
func TestZKP_Session_CreateAndCloseTakeAZxidEach(t *testing.T) {
	k := start(t)
	a := k.connect()
	h, _ := a.want(znode.OK, wire.OpCreate, create("/a", "", znode.Persistent))
	b := k.connect() // +1
	b.close()        // +2
	h2, _ := a.want(znode.OK, wire.OpCreate, create("/b", "", znode.Persistent))
	if h2.Zxid != h.Zxid+3 {
		t.Errorf("zxids %s and %s, want 3 apart", h.Zxid, h2.Zxid)
	}
}

// 10. Requests after the ConnectRequest are served when the session exists.
func TestZKP_Session_RequestsBehindConnectAreServed(t *testing.T) {
	c := start(t).dial()
	q := wire.ConnectRequest{TimeoutMillis: briskMillis, Password: make([]byte, 16)}
	b := frame(q.Append(nil))
	b = wire.AppendRequest(b, wire.RequestHeader{Xid: 1, Type: wire.OpCreate},
		create("/a", "", znode.Ephemeral))
	b = wire.AppendRequest(b, wire.RequestHeader{Xid: 2, Type: wire.OpExists},
		&wire.ExistsRequest{Path: "/a"})
	c.raw(b)
	var x wire.ConnectResponse
	x.Decode(jute.NewReader(c.next()))
	if h, _ := c.reply(1, wire.OpCreate); h.Err != znode.OK {
		t.Fatalf("reply %+v, want OK", h)
	}
	_, body := c.reply(2, wire.OpExists)
	if owner := body.(*wire.ExistsResponse).Stat.EphemeralOwner; owner != x.SessionID {
		t.Errorf("owner %s, session %s", owner, x.SessionID)
	}
}

// 11. and 12. A silent session expires, one that pings does not; 14. expiry
// closes the connection without a packet.
func TestZKP_Session_SilenceExpires(t *testing.T) {
	k := start(t)
	watcher := k.connect()
	watcher.want(znode.OK, wire.OpAddWatch, &wire.AddWatchRequest{Path: "/e", Mode: wire.AddWatchPersistent})
	c := k.dial().connect(wire.ConnectRequest{TimeoutMillis: 1000})
	c.want(znode.OK, wire.OpCreate, create("/e", "", znode.Ephemeral))
	watcher.event(znode.EventCreated, "/e")
	c.closed()
	watcher.event(znode.EventDeleted, "/e")
	x := k.dial().shake(wire.ConnectRequest{
		TimeoutMillis: 1000, SessionID: c.id, Password: c.password,
	})
	if x.TimeoutMillis != 0 || x.SessionID != 0 {
		t.Errorf("expired session: %+v", x)
	}
}

// 15. Nothing of a session happens after its closeSession.
func TestZKP_Session_CreateBehindCloseFails(t *testing.T) {
	k := start(t)
	c := k.connect()
	var b []byte
	b = wire.AppendRequest(b, wire.RequestHeader{Xid: 1, Type: wire.OpCreate},
		create("/before", "", znode.Ephemeral))
	b = wire.AppendRequest(b, wire.RequestHeader{Xid: 2, Type: wire.OpCloseSession}, nil)
	b = wire.AppendRequest(b, wire.RequestHeader{Xid: 3, Type: wire.OpCreate},
		create("/behind", "", znode.Persistent))
	c.raw(b)
	c.reply(1, wire.OpCreate)
	c.reply(2, wire.OpCloseSession)
	c.closed()
	d := k.connect()
	d.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/before"})
	d.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/behind"})
}

// 16. A write through a former owner ends the connection without a reply.
func TestZKP_Session_MovedWriteGetsNoReply(t *testing.T) {
	k := start(t)
	c := k.connect()
	release := k.log.block()
	c.send(wire.OpCreate, create("/a", "", znode.Persistent))
	k.log.move(c.id, 2) // what another server's attach does
	release()
	c.closed()
	k.connect().want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/a"})
}

// 17. closeSession's reply is a header with its own zxid, then FIN.
func TestZKP_Session_CloseReplyThenFIN(t *testing.T) {
	c := start(t).connect()
	h, _ := c.want(znode.OK, wire.OpCreate, create("/e", "", znode.Ephemeral))
	xid := c.send(wire.OpCloseSession, nil)
	p := c.next()
	if len(p) != wire.ReplyHeaderBytes {
		t.Fatalf("reply of %d bytes, want a header", len(p))
	}
	if x := wire.Xid(binary.BigEndian.Uint32(p)); x != xid {
		t.Errorf("xid %s, want %s", x, xid)
	}
	if z := znode.Zxid(binary.BigEndian.Uint64(p[4:])); z != h.Zxid+1 {
		t.Errorf("zxid %s, want %s", z, h.Zxid+1)
	}
	c.closed()
}

// 18. and 19. Replies come in the order of the requests, reads and pings too,
// and a read sees the write before it.
func TestZKP_Session_RepliesKeepOrder(t *testing.T) {
	k := start(t)
	c := k.connect()
	c.create("/a", "")
	release := k.log.block()
	var b []byte
	const rounds = 200
	for i := range rounds {
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(3 * i), Type: wire.OpSetData},
			&wire.SetDataRequest{Path: "/a", Data: []byte{byte(i)}, Version: znode.AnyVersion})
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: wire.Xid(3*i + 1), Type: wire.OpGetData},
			&wire.GetDataRequest{Path: "/a"})
		b = wire.AppendRequest(b, wire.RequestHeader{Xid: -2, Type: wire.OpPing}, nil)
	}
	c.raw(b)
	release()
	for i := range rounds {
		c.reply(wire.Xid(3*i), wire.OpSetData)
		_, body := c.reply(wire.Xid(3*i+1), wire.OpGetData)
		if d := body.(*wire.GetDataResponse).Data; !bytes.Equal(d, []byte{byte(i)}) {
			t.Fatalf("read %d saw % x", i, d)
		}
		c.reply(wire.XidPing, wire.OpPing)
	}
}

// 19. A session's reads are not held by another session's write.
func TestZKP_Session_OthersWritesHoldNoRead(t *testing.T) {
	k := start(t)
	c, d := k.connect(), k.connect()
	release := k.log.block()
	xid := c.send(wire.OpCreate, create("/a", "", znode.Persistent))
	d.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/a"})
	d.fence()
	release()
	c.reply(xid, wire.OpCreate)
}

// 20. auth then create, sent at once: the create has the identity.
func TestZKP_Session_PipelinedAuthCounts(t *testing.T) {
	c := start(t).connect()
	acl := []znode.ACL{{Perms: znode.PermAll, ID: znode.AuthIDs}}
	b := wire.AppendRequest(nil, wire.RequestHeader{Xid: wire.XidAuth, Type: wire.OpAuth},
		&wire.AuthRequest{Scheme: "digest", Auth: []byte("ann:secret")})
	b = wire.AppendRequest(b, wire.RequestHeader{Xid: 1, Type: wire.OpCreate},
		&wire.CreateRequest{Path: "/a", ACL: acl})
	c.raw(b)
	c.reply(wire.XidAuth, wire.OpAuth)
	if h, _ := c.reply(1, wire.OpCreate); h.Err != znode.OK {
		t.Fatalf("reply %+v, want OK", h)
	}
}

// 21. The zxid in the header of each kind of reply.
func TestZKP_Session_HeaderZxids(t *testing.T) {
	k := start(t)
	c := k.connect()
	h, _ := c.want(znode.OK, wire.OpCreate, create("/a", "", znode.Persistent))
	last := h.Zxid
	// A failed write has a zxid of its own.
	h, _ = c.want(znode.ErrNodeExists, wire.OpCreate, create("/a", "", znode.Persistent))
	if h.Zxid != last+1 {
		t.Errorf("failed write: %s, want %s", h.Zxid, last+1)
	}
	last++
	for _, r := range []struct {
		op   wire.OpCode
		body wire.Request
		code znode.Error
	}{
		{wire.OpGetData, &wire.GetDataRequest{Path: "/a"}, znode.OK},
		{wire.OpGetData, &wire.GetDataRequest{Path: "/none"}, znode.ErrNoNode},
		{wire.OpSetWatches, &wire.SetWatchesRequest{}, znode.OK},
		{wire.OpSync, &wire.SyncRequest{Path: "/a"}, znode.OK},
		{wire.OpAddWatch, &wire.AddWatchRequest{Path: "/a"}, znode.OK},
	} {
		if h, _ := c.want(r.code, r.op, r.body); h.Zxid != last {
			t.Errorf("%s: %s, want the last zxid %s", r.op, h.Zxid, last)
		}
	}
	c.send(wire.OpPing, nil)
	if h, _ := c.reply(wire.XidPing, wire.OpPing); h.Zxid != last { // 27.
		t.Errorf("ping: %s, want %s", h.Zxid, last)
	}
	if h, _ := c.want(znode.OK, wire.OpAuth,
		&wire.AuthRequest{Scheme: "digest", Auth: []byte("a:b")}); h.Zxid != 0 {
		t.Errorf("auth: %s, want 0", h.Zxid)
	}
	d := k.connect() // takes a zxid
	h, _ = d.want(znode.OK, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})
	if h.Zxid != last+2 {
		t.Errorf("setData: %s, want %s", h.Zxid, last+2)
	}
	if e := c.event(znode.EventDataChanged, "/a"); e.Zxid != h.Zxid {
		t.Errorf("notification: %s, want %s", e.Zxid, h.Zxid)
	}
}

// 24. Unknown types, and those a client may not send, get UNIMPLEMENTED in
// their turn; then the connection is closed.
func TestZKP_Session_UnknownTypeClosesAfterReply(t *testing.T) {
	k := start(t)
	for _, op := range []wire.OpCode{
		0, 10, 23, 99, 108, 500, -1, -10, -12, 1 << 30, wire.OpCheck,
	} {
		c := k.connect()
		release := k.log.block()
		first := c.send(wire.OpSync, &wire.SyncRequest{Path: "/"})
		xid := c.send(op, &wire.CheckRequest{Path: "/", Version: -1})
		c.send(wire.OpPing, nil)
		release()
		c.reply(first, wire.OpSync)
		p := c.next()
		want := wire.ReplyHeader{Xid: xid, Zxid: -1, Err: znode.ErrUnimplemented}
		var h wire.ReplyHeader
		h.Decode(jute.NewReader(p))
		if len(p) != wire.ReplyHeaderBytes || h != want {
			t.Errorf("type %d: % x", op, p)
		}
		c.closed()
	}
}

// 24. A body that cannot be decoded gets MARSHALLINGERROR and the connection
// stays.
func TestZKP_Session_UndecodableBodyKeepsTheConnection(t *testing.T) {
	c := start(t).connect()
	for _, op := range []wire.OpCode{
		wire.OpCreate, wire.OpCreate2, wire.OpCreateTTL, wire.OpCreateContainer, wire.OpDelete,
		wire.OpExists, wire.OpGetData, wire.OpSetData, wire.OpGetACL, wire.OpSetACL,
		wire.OpGetChildren, wire.OpGetChildren2, wire.OpSync, wire.OpMulti, wire.OpMultiRead,
		wire.OpReconfig, wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpDeleteContainer,
		wire.OpSetWatches, wire.OpSetWatches2, wire.OpGetEphemerals,
		wire.OpGetAllChildrenNumber, wire.OpAddWatch, wire.OpFeed, wire.OpBranch, wire.OpSyncWithin,
		wire.OpTree, wire.OpRevisions,
	} {
		c.xid++
		c.raw(frame((&jutePrefix{c.xid, op, []byte{0, 0, 0, 9, 'x'}}).bytes()))
		if h, _ := c.reply(c.xid, op); h.Err != znode.ErrMarshalling {
			t.Errorf("%s: got %s, want MARSHALLINGERROR", op, h.Err.Name())
		}
	}
	c.fence()
}

type jutePrefix struct {
	xid  wire.Xid
	op   wire.OpCode
	body []byte
}

func (p *jutePrefix) bytes() []byte {
	h := wire.RequestHeader{Xid: p.xid, Type: p.op}
	return append(h.Append(nil), p.body...)
}

// 25. A server without a majority closes new connections.
func TestZKP_Session_NotServingClosesConnections(t *testing.T) {
	k := start(t)
	c := k.connect()
	k.log.setStatus(func(s *consensus.Status) { s.Contact = time.Hour })
	c.closed()
	d := k.dial()
	d.raw(frame((&wire.ConnectRequest{Password: make([]byte, 16)}).Append(nil)))
	d.closed()
}

// While the state is a copy of ZooKeeper's, clients are sent on to their next server, without an answer that would end
// the sessions that they have. Four-letter words are answered.
func TestZKP_Session_MirrorClosesConnections(t *testing.T) {
	k := start(t)
	waiting := k.dial() // has not said anything yet
	if r, err := k.srv.Do(t.Context(), &state.Command{Op: state.OpMirror, Data: []byte("source")}); err != nil || r.Code != znode.OK {
		t.Fatalf("starting to mirror: %v, %v", r.Code, err)
	}
	for _, c := range []*client{waiting, k.dial()} {
		c.raw(frame((&wire.ConnectRequest{Password: make([]byte, 16)}).Append(nil)))
		c.closed()
	}
	for word, want := range map[string]string{"ruok": "imok", "isro": "null"} {
		if got := k.word(word); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	if r, err := k.srv.Do(t.Context(), &state.Command{Op: state.OpMirror, Mirror: state.MirrorStop}); err != nil || r.Code != znode.OK {
		t.Fatalf("ending it: %v, %v", r.Code, err)
	}
	k.connect().fence()
}

// 26. Connections over the limit of one address are closed at once.
func TestZKP_Session_LimitPerAddress(t *testing.T) {
	log := &lines{}
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.MaxPerAddress = 2 }, logTo(log))
	a := k.connect()
	k.connect().fence()
	for range 3 {
		k.dial().closed()
	}
	if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "limit=maxClientCnxns") ||
		!strings.Contains(s, "remote=127.0.0.1:") {
		t.Errorf("log %q", s)
	}
	a.close()
	a.c.Close()
	k.eventually("room for another", func() bool {
		c := k.dial()
		c.raw(frame((&wire.ConnectRequest{Password: make([]byte, 16)}).Append(nil)))
		_, err := c.frames.Next()
		return err == nil
	})
}

// maxCnxns.
func TestZKP_Session_LimitOfAll(t *testing.T) {
	log := &lines{}
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.MaxConnections = 1 }, logTo(log))
	k.connect().fence()
	k.dial().closed()
	if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "limit=maxCnxns") {
		t.Errorf("log %q", s)
	}
}

// 1.7: a connection without a session is closed after a while.
func TestZKP_Session_NoHandshakeIsClosed(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.HandshakeTimeout = 50 * time.Millisecond })
	k.dial().closed()
	c := k.dial()
	c.raw([]byte{0, 0, 0, 45, 0, 0})
	c.closed()
}

// move makes another server the owner of a session.
func (l *fakeLog) move(id znode.SessionID, to uint64) {
	l.BeginApply()
	defer l.EndApply()
	x := l.machine.Sessions().Get(id)
	l.machine.Sessions().Attach(id, x.Password, x.Timeout, to)
}
