package zk_test

import (
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func del(path string) *wire.DeleteRequest { return &wire.DeleteRequest{Path: path, Version: -1} }

func set(path string) *wire.SetDataRequest { return &wire.SetDataRequest{Path: path, Version: -1} }

// 60. and 61. Which edit wakes which one-shot watch, once.
func TestZKP_Watch_EventMatrix(t *testing.T) {
	k := start(t)
	c, w := k.connect(), k.connect()
	c.create("/p", "")
	w.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/p/a", Watch: true})
	w.want(znode.OK, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/p", Watch: true})
	c.create("/p/a", "")
	w.event(znode.EventCreated, "/p/a")
	w.event(znode.EventChildrenChanged, "/p")
	c.want(znode.OK, wire.OpSetData, set("/p/a"))
	w.fence() // both are used up
	w.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/p/a", Watch: true})
	c.want(znode.OK, wire.OpSetACL,
		&wire.SetACLRequest{Path: "/p/a", ACL: znode.OpenACL, Version: -1}) // fires no watch
	c.want(znode.OK, wire.OpSetData, set("/p/a"))
	w.event(znode.EventDataChanged, "/p/a")
	w.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/p/a", Watch: true})
	w.want(znode.OK, wire.OpGetChildren2, &wire.GetChildrenRequest{Path: "/p/a", Watch: true})
	w.want(znode.OK, wire.OpGetChildren2, &wire.GetChildrenRequest{Path: "/p", Watch: true})
	c.want(znode.OK, wire.OpDelete, del("/p/a"))
	w.event(znode.EventDeleted, "/p/a") // one copy of two watches
	w.event(znode.EventChildrenChanged, "/p")
	w.fence()
}

// 62. and 63. Persistent and recursive watches.
func TestZKP_Watch_PersistentAndRecursive(t *testing.T) {
	k := start(t)
	c, p, r := k.connect(), k.connect(), k.connect()
	xid := p.send(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/a", Mode: wire.AddWatchPersistent})
	if b := p.next(); len(b) != wire.ReplyHeaderBytes+4 {
		t.Errorf("addWatch's reply to %s has %d bytes, want a body of 4", xid, len(b))
	}
	r.want(znode.OK, wire.OpAddWatch,
		&wire.AddWatchRequest{Path: "/a", Mode: wire.AddWatchPersistentRecursive})
	c.create("/a", "")
	c.create("/a/b", "")
	c.create("/a/b/c", "")
	c.want(znode.OK, wire.OpSetData, set("/a/b/c"))
	c.want(znode.OK, wire.OpSetData, set("/a"))
	c.want(znode.OK, wire.OpDelete, del("/a/b/c"))
	c.want(znode.OK, wire.OpDelete, del("/a/b"))
	c.want(znode.OK, wire.OpDelete, del("/a"))
	p.event(znode.EventCreated, "/a")
	p.event(znode.EventChildrenChanged, "/a")
	p.event(znode.EventDataChanged, "/a")
	p.event(znode.EventChildrenChanged, "/a")
	p.event(znode.EventDeleted, "/a")
	p.fence()
	r.event(znode.EventCreated, "/a")
	r.event(znode.EventCreated, "/a/b")
	r.event(znode.EventCreated, "/a/b/c") // the changed znode, not the watch
	r.event(znode.EventDataChanged, "/a/b/c")
	r.event(znode.EventDataChanged, "/a")
	r.event(znode.EventDeleted, "/a/b/c")
	r.event(znode.EventDeleted, "/a/b")
	r.event(znode.EventDeleted, "/a")
	r.fence()
	c.want(znode.ErrMarshalling, wire.OpAddWatch, &wire.AddWatchRequest{Path: "/a", Mode: 2})
}

// 64. An exists of a missing znode sets a watch; a failed read does not.
func TestZKP_Watch_OnlyExistsWatchesWhatIsMissing(t *testing.T) {
	k := start(t)
	c, w := k.connect(), k.connect()
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/secret",
		ACL: []znode.ACL{{Perms: znode.PermAll &^ znode.PermRead, ID: znode.Anyone}}})
	w.want(znode.ErrNoNode, wire.OpGetData, &wire.GetDataRequest{Path: "/n", Watch: true})
	w.want(znode.ErrNoNode, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/n", Watch: true})
	w.want(znode.ErrNoAuth, wire.OpGetData, &wire.GetDataRequest{Path: "/secret", Watch: true})
	w.want(znode.ErrNoAuth, wire.OpExists, &wire.ExistsRequest{Path: "/secret", Watch: true}) // 52.
	for _, path := range []string{"/n", "/secret"} {
		w.want(znode.ErrNoWatcher, wire.OpCheckWatches,
			&wire.RemoveWatchesRequest{Path: path, Type: znode.WatcherAny})
	}
	w.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/n", Watch: true})
	w.want(znode.OK, wire.OpCheckWatches,
		&wire.RemoveWatchesRequest{Path: "/n", Type: znode.WatcherData})
}

// 65. The event comes before the reply of whatever shows the change, the
// writer's own included.
func TestZKP_Watch_EventBeforeReply(t *testing.T) {
	k := start(t)
	c := k.connect()
	c.create("/a", "")
	for i := range 50 {
		c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true})
		xid := c.send(wire.OpSetData, set("/a"))
		read := c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/a"})
		c.event(znode.EventDataChanged, "/a")
		c.reply(xid, wire.OpSetData)
		_, x := c.reply(read, wire.OpGetData)
		if v := x.(*wire.GetDataResponse).Stat.Version; v != znode.Version(i+1) {
			t.Fatalf("round %d: version %d", i, v)
		}
	}
}

// 66. Events are for clients that may read; a one-shot watch is used up in any case
// (CVE-2024-23944).
func TestZKP_Watch_ReadFilter(t *testing.T) {
	k := start(t)
	c, w := k.connect(), k.connect()
	w.want(znode.OK, wire.OpAddWatch,
		&wire.AddWatchRequest{Path: "/", Mode: wire.AddWatchPersistentRecursive})
	w.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/hid", Watch: true})
	noRead := []znode.ACL{{Perms: znode.PermAll &^ znode.PermRead, ID: znode.Anyone}}
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/hid", ACL: noRead})
	w.fence()
	w.want(znode.ErrNoWatcher, wire.OpCheckWatches,
		&wire.RemoveWatchesRequest{Path: "/hid", Type: znode.WatcherData})
	c.create("/open", "")
	w.event(znode.EventCreated, "/open")
}

// 67. Events that setWatches sends for missed changes, before its reply, with zxid -1 and only
// to clients that may read the znode.
func TestZKP_Watch_SetWatchesCatchesUp(t *testing.T) {
	for _, op := range []wire.OpCode{wire.OpSetWatches, wire.OpSetWatches2} {
		t.Run(op.String(), func(t *testing.T) { setWatchesCatchesUp(t, op) })
	}
}

func setWatchesCatchesUp(t *testing.T, op wire.OpCode) {
	k := start(t)
	c, w := k.connect(), k.connect()
	for _, p := range []string{"/same", "/changed", "/gone", "/kids", "/kids2", "/gonekids"} {
		c.create(p, "")
	}
	noRead := []znode.ACL{{Perms: znode.PermAll &^ znode.PermRead, ID: znode.Anyone}}
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/secret", ACL: noRead})
	seen, _ := c.want(znode.OK, wire.OpSync, &wire.SyncRequest{Path: "/"})
	c.want(znode.OK, wire.OpSetData, set("/changed"))
	c.want(znode.OK, wire.OpSetData, set("/secret"))
	c.want(znode.OK, wire.OpDelete, del("/gone"))
	c.want(znode.OK, wire.OpDelete, del("/gonekids"))
	c.create("/kids/x", "")
	c.create("/born", "")
	q := wire.SetWatchesRequest{
		RelativeZxid: seen.Zxid,
		DataWatches:  []string{"/same", "/changed", "/gone", "/secret"},
		ExistWatches: []string{"/born", "/unborn"},
		ChildWatches: []string{"/kids", "/kids2", "/gonekids"},
	}
	var body wire.Request = &q
	if op == wire.OpSetWatches2 {
		body = &wire.SetWatches2Request{SetWatchesRequest: q,
			PersistentWatches: []string{"/gone"}, PersistentRecursiveWatches: []string{"/rec"}}
	}
	xid := w.send(op, body)
	for _, e := range []struct {
		typ  znode.EventType
		path string
	}{
		{znode.EventDataChanged, "/changed"}, {znode.EventDeleted, "/gone"},
		{znode.EventCreated, "/born"},
		{znode.EventChildrenChanged, "/kids"}, {znode.EventDeleted, "/gonekids"},
	} {
		if h := w.event(e.typ, e.path); h.Zxid != znode.NoZxid {
			t.Errorf("%s: zxid %s, want -1", e.path, h.Zxid)
		}
	}
	w.reply(xid, op)
	// The others are armed, those that fired are not.
	c.want(znode.OK, wire.OpSetData, set("/same"))
	w.event(znode.EventDataChanged, "/same")
	c.want(znode.OK, wire.OpSetData, set("/changed"))
	c.create("/unborn", "")
	w.event(znode.EventCreated, "/unborn")
	c.create("/kids2/x", "")
	w.event(znode.EventChildrenChanged, "/kids2")
	if op == wire.OpSetWatches2 {
		c.create("/rec", "")
		c.create("/rec/x", "")
		c.create("/gone", "")
		w.event(znode.EventCreated, "/rec")
		w.event(znode.EventCreated, "/rec/x")
		w.event(znode.EventCreated, "/gone")
	}
	w.fence()
}

// 69. Watches die with their connection.
func TestZKP_Watch_DiesWithTheConnection(t *testing.T) {
	k := start(t)
	c, w := k.connect(), k.connect()
	c.create("/a", "")
	w.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true})
	d := k.dial().connect(wire.ConnectRequest{
		TimeoutMillis: briskMillis, SessionID: w.id, Password: w.password})
	w.closed()
	c.want(znode.OK, wire.OpSetData, set("/a"))
	d.fence()
}

// 70. removeWatches and checkWatches.
func TestZKP_Watch_RemoveAndCheck(t *testing.T) {
	c := start(t).connect()
	c.create("/a", "")
	arm := func() {
		c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true})
		c.want(znode.OK, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/a", Watch: true})
		c.want(znode.OK, wire.OpAddWatch, &wire.AddWatchRequest{Path: "/a"})
		c.want(znode.OK, wire.OpAddWatch,
			&wire.AddWatchRequest{Path: "/a", Mode: wire.AddWatchPersistentRecursive})
	}
	arm()
	for typ := znode.WatcherChildren; typ <= znode.WatcherRecursive; typ++ {
		q := &wire.RemoveWatchesRequest{Path: "/a", Type: typ}
		if typ == znode.WatcherAny {
			continue
		}
		c.want(znode.OK, wire.OpCheckWatches, q)
		c.want(znode.OK, wire.OpRemoveWatches, q)
		c.want(znode.ErrNoWatcher, wire.OpCheckWatches, q)
		c.want(znode.ErrNoWatcher, wire.OpRemoveWatches, q)
	}
	arm()
	c.want(znode.OK, wire.OpRemoveWatches,
		&wire.RemoveWatchesRequest{Path: "/a", Type: znode.WatcherAny})
	c.want(znode.OK, wire.OpSetData, set("/a")) // nothing comes before the reply
	for _, typ := range []znode.WatcherType{0, 6, -1} {
		c.want(znode.ErrMarshalling, wire.OpCheckWatches,
			&wire.RemoveWatchesRequest{Path: "/a", Type: typ})
	}
}

// 71. A session's end deletes its ephemerals with one zxid; other clients get an event for each.
func TestZKP_Watch_SessionEndFiresForEachEphemeral(t *testing.T) {
	k := start(t)
	c, w := k.connect(), k.connect()
	w.want(znode.OK, wire.OpAddWatch,
		&wire.AddWatchRequest{Path: "/", Mode: wire.AddWatchPersistentRecursive})
	for i := range 3 {
		c.want(znode.OK, wire.OpCreate, create(fmt.Sprintf("/e%d", i), "", znode.Ephemeral))
		w.event(znode.EventCreated, fmt.Sprintf("/e%d", i))
	}
	h, _ := c.want(znode.OK, wire.OpCloseSession, nil)
	for i := range 3 {
		if e := w.event(znode.EventDeleted, fmt.Sprintf("/e%d", i)); e.Zxid != h.Zxid {
			t.Errorf("zxid %s, want %s", e.Zxid, h.Zxid)
		}
	}
}

// The bound on watches gives a code of ZooKeeper's and keeps the connection.
func TestZKP_Watch_Limit(t *testing.T) {
	c := start(t, func(s *serverConfig, _ *zkConfig) { s.WatchLimit = 2 }).connect()
	for i, code := range []znode.Error{znode.OK, znode.OK, znode.ErrSystem} {
		c.want(code, wire.OpAddWatch, &wire.AddWatchRequest{Path: fmt.Sprintf("/%d", i)})
	}
	c.want(znode.ErrSystem, wire.OpGetData, &wire.GetDataRequest{Path: "/", Watch: true})
	c.want(znode.ErrSystem, wire.OpExists, &wire.ExistsRequest{Path: "/none", Watch: true})
	c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/"})
}
