package zk_test

import (
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func op(t wire.OpCode, body wire.Request) wire.MultiOp {
	return wire.MultiOp{Type: t, Request: body}
}

func (c *client) multi(ops ...wire.MultiOp) (wire.ReplyHeader, []wire.MultiResult) {
	c.t.Helper()
	h, x := c.want(znode.OK, wire.OpMulti, &wire.MultiRequest{Ops: ops})
	return h, x.(*wire.MultiResponse).Results
}

// 53. and 54. One zxid and one time for all; later operations see earlier
// ones; each result under its own type.
func TestZKP_Multi_AllOrNothing(t *testing.T) {
	c := start(t).connect()
	h, r := c.multi(
		op(wire.OpCreate, create("/m", "", znode.Persistent)),
		op(wire.OpCreate2, create("/m/s-", "x", znode.PersistentSequential)),
		op(wire.OpCreate2, create("/m/s-", "x", znode.EphemeralSequential)),
		op(wire.OpCheck, &wire.CheckRequest{Path: "/m", Version: 0}),
		op(wire.OpSetData, &wire.SetDataRequest{Path: "/m", Data: []byte("y"), Version: 0}),
		op(wire.OpDelete, &wire.DeleteRequest{Path: "/m/s-0000000000", Version: 0}),
		op(wire.OpCreateContainer, create("/c", "", znode.Container)),
		op(wire.OpCreateTTL, &wire.CreateTTLRequest{
			Path: "/t", ACL: znode.OpenACL, Mode: znode.PersistentTTL, TTLMillis: 1000}),
	)
	types := []wire.OpCode{1, 15, 15, 13, 5, 2, 15, 15}
	if len(r) != len(types) {
		t.Fatalf("%d results", len(r))
	}
	for i := range r {
		if r[i].Type != types[i] || r[i].Err != znode.OK {
			t.Errorf("result %d: %+v", i, r[i])
		}
	}
	if p := r[2].Response.(*wire.Create2Response); p.Path != "/m/s-0000000001" ||
		p.Stat.Czxid != h.Zxid || p.Stat.EphemeralOwner != c.id {
		t.Errorf("result %+v, want the ephemeral /m/s-0000000001 of session %s, created at %s", p, c.id, h.Zxid)
	}
	if s := r[4].Response.(*wire.SetDataResponse).Stat; s.Version != 1 || s.Mzxid != h.Zxid ||
		s.Czxid != h.Zxid || s.Mtime != s.Ctime {
		t.Errorf("stat %+v, want version 1, created and changed at %s", s, h.Zxid)
	}
	_, r = c.multi(
		op(wire.OpCreate, create("/m/s-", "", znode.PersistentSequential)),
		op(wire.OpDelete, &wire.DeleteRequest{Path: "/none", Version: -1}),
		op(wire.OpSetData, &wire.SetDataRequest{Path: "/m", Version: -1}),
	)
	for i, code := range []znode.Error{znode.OK, znode.ErrNoNode, znode.ErrRuntimeInconsistency} {
		if r[i].Type != wire.OpError || r[i].Err != code {
			t.Errorf("result %d of the failed multi: %+v", i, r[i])
		}
	}
	// The parent's counter is as if nothing had been.
	x := wantOK[*wire.CreateResponse](c, wire.OpCreate, create("/m/s-", "", znode.PersistentSequential))
	if x.Path != "/m/s-0000000002" {
		t.Errorf("created %q, want /m/s-0000000002", x.Path)
	}
	if _, r := c.multi(); len(r) != 0 {
		t.Errorf("an empty multi: %+v", r)
	}
}

// The mode goes before the opcode inside a multi, and only there.
func TestZKP_Multi_ModeDecidesTheKind(t *testing.T) {
	c := start(t).connect()
	ttl := func(path string, mode znode.Mode, ms int64) wire.MultiOp {
		return op(wire.OpCreateTTL, &wire.CreateTTLRequest{
			Path: path, ACL: znode.OpenACL, Mode: mode, TTLMillis: ms})
	}
	for _, x := range []struct {
		op     wire.MultiOp
		result wire.OpCode
		err    znode.Error
	}{
		{op(wire.OpCreate, create("/1", "", znode.Container)), wire.OpCreate2, 0},
		{ttl("/2", znode.PersistentTTL, 0), wire.OpError, znode.ErrBadArguments},
		{op(wire.OpCreateContainer, create("/3", "", znode.Persistent)), wire.OpCreate2, 0},
		{ttl("/4", znode.Persistent, 5), wire.OpCreate, 0},
		{ttl("/5", znode.Container, 5), wire.OpCreate2, 0},
		{ttl("/6", 9, 5), wire.OpError, znode.ErrBadArguments},
		{ttl("/7", znode.PersistentTTL, 5), wire.OpCreate2, 0},
	} {
		_, r := c.multi(x.op)
		if len(r) != 1 || r[0].Type != x.result || r[0].Err != x.err {
			t.Errorf("%+v: results %+v, want one of type %v with %v", x.op.Request, r, x.result, x.err)
		}
	}
	// An unknown mode of the others, and one that needs a TTL, spoil the whole request (50.).
	for _, mode := range []znode.Mode{9, znode.PersistentTTL, znode.PersistentSequentialTTL} {
		c.want(znode.ErrMarshalling, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
			op(wire.OpCreate, create("/8", "", znode.Persistent)),
			op(wire.OpCreate2, create("/9", "", mode)),
		}})
	}
	c.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/8"})
	c.want(znode.ErrMarshalling, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		op(wire.OpGetData, &wire.GetDataRequest{Path: "/"}),
	}})
}

// 55. check needs READ and can look at what the multi has created.
func TestZKP_Multi_Check(t *testing.T) {
	c := start(t).connect()
	c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: "/w",
		ACL: []znode.ACL{{Perms: znode.PermWrite, ID: znode.Anyone}}})
	for _, x := range []struct {
		path    string
		version znode.Version
		code    znode.Error
	}{
		{"/zookeeper", -1, znode.OK}, {"/zookeeper", 4, znode.ErrBadVersion},
		{"/none", -1, znode.ErrNoNode}, {"/w", -1, znode.ErrNoAuth},
	} {
		_, r := c.multi(op(wire.OpCheck, &wire.CheckRequest{Path: x.path, Version: x.version}))
		if r[0].Err != x.code {
			t.Errorf("check %s %d: %+v", x.path, x.version, r[0])
		}
	}
	_, r := c.multi(op(wire.OpCreate, create("/new", "", 0)),
		op(wire.OpCheck, &wire.CheckRequest{Path: "/new", Version: 0}))
	if r[1].Type != wire.OpCheck {
		t.Errorf("results %+v, want the second to be a check's", r)
	}
}

// 56. A failed multi sends no events; a child created and deleted in one multi has both.
func TestZKP_Multi_Events(t *testing.T) {
	c := start(t).connect()
	watch := &wire.ExistsRequest{Path: "/x", Watch: true}
	c.want(znode.ErrNoNode, wire.OpExists, watch)
	c.multi(op(wire.OpCreate, create("/x", "", 0)),
		op(wire.OpDelete, &wire.DeleteRequest{Path: "/none", Version: -1}))
	c.fence()
	c.want(znode.OK, wire.OpAddWatch, &wire.AddWatchRequest{Path: "/x"})
	c.send(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		op(wire.OpCreate, create("/x", "", 0)),
		op(wire.OpDelete, &wire.DeleteRequest{Path: "/x", Version: -1}),
	}})
	c.event(znode.EventCreated, "/x")
	c.event(znode.EventDeleted, "/x")
	c.reply(c.xid, wire.OpMulti)
}

// 1.4: multiRead's results are independent of each other.
func TestZKP_MultiRead_ErrorsArePerOperation(t *testing.T) {
	c := start(t).connect()
	c.create("/a", "data")
	c.create("/a/b", "")
	reads := []wire.MultiOp{
		op(wire.OpGetData, &wire.GetDataRequest{Path: "/a", Watch: true}),
		op(wire.OpGetData, &wire.GetDataRequest{Path: "/none"}),
		op(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/a", Watch: true}),
	}
	x := wantOK[*wire.MultiResponse](c, wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: reads})
	if len(x.Results) != 3 || string(x.Results[0].Response.(*wire.GetDataResponse).Data) != "data" ||
		x.Results[1].Err != znode.ErrNoNode || x.Results[1].Type != wire.OpError ||
		x.Results[2].Response.(*wire.GetChildrenResponse).Children[0] != "b" {
		t.Errorf("results %+v, want data, NONODE and the child b", x.Results)
	}
	c.want(znode.OK, wire.OpSetData, set("/a")) // no watch was left
	c.want(znode.ErrMarshalling, wire.OpMultiRead, &wire.MultiRequest{
		Read: true, Ops: []wire.MultiOp{op(wire.OpDelete, del("/a"))}})
}

// A request of 48 KB that asked for a megabyte 3,000 times took 4 GB, and one for more than 2 GiB crashed the server.
// It gets an error, and its connection stays open.
func TestRegression_MultiRead_ReplyIsBounded(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.OutboxBytes = 4 << 20 })
	c := k.connect()
	c.create("/large", strings.Repeat("x", 900_000))
	var reads []wire.MultiOp
	for range 2400 {
		reads = append(reads, wire.MultiOp{Type: wire.OpGetData, Request: &wire.GetDataRequest{Path: "/large"}})
	}
	c.want(znode.ErrSystem, wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: reads})
	x := wantOK[*wire.MultiResponse](c, wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: reads[:4]})
	if len(x.Results) != 4 {
		t.Errorf("got %d results, want 4", len(x.Results))
	}
}
