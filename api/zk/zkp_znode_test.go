package zk_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// 28.-33. Path rules as a client sees them, in ZooKeeper's order of checks.
func TestZKP_Path_Rules(t *testing.T) {
	c := start(t).connect()
	c.create("/p", "")
	for path, code := range map[string]znode.Error{
		"foo": znode.ErrBadArguments, "a/b": znode.ErrNoNode, "/": znode.ErrNodeExists,
		"/p/": znode.ErrBadArguments, "/p/.": znode.ErrBadArguments, "/p/..": znode.ErrBadArguments,
		"/p//x": znode.ErrNoNode, "/p/\x01": znode.ErrBadArguments, "/a\x00b": znode.ErrBadArguments,
		"/p/\U0001F600": znode.ErrBadArguments, "/p/\uE000": znode.ErrBadArguments,
		"/p/.foo": znode.OK, "/p/..f..": znode.OK, "/p/f.": znode.OK, "/p/é": znode.OK,
	} {
		if h, _ := c.call(wire.OpCreate, create(path, "", znode.Persistent)); h.Err != code {
			t.Errorf("create %q: %s, want %s", path, h.Err.Name(), code.Name())
		}
	}
	for _, prefix := range []string{"/p/", "/p/.", "/p/.."} { // 31.
		x := wantOK[*wire.CreateResponse](c, wire.OpCreate,
			create(prefix, "", znode.PersistentSequential))
		if len(x.Path) != len(prefix)+10 {
			t.Errorf("sequential %q: %q", prefix, x.Path)
		}
	}
	c.want(znode.ErrBadArguments, wire.OpDelete, &wire.DeleteRequest{Path: "/", Version: -1})
	c.want(znode.ErrBadArguments, wire.OpExists, &wire.ExistsRequest{Path: "/a\x00"})
	c.want(znode.ErrNoNode, wire.OpGetData, &wire.GetDataRequest{Path: "nothing"})
	if a, b := c.stat("/"), c.stat(""); a != b { // 33.
		t.Errorf("%+v and %+v", a, b)
	}
}

// 34. What every tree has cannot be deleted.
func TestZKP_Path_ReservedCannotBeDeleted(t *testing.T) {
	c := start(t).connect()
	for _, path := range []string{"/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		c.want(znode.ErrBadArguments, wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1})
	}
}

// 35. A fresh tree.
func TestZKP_Path_FreshTree(t *testing.T) {
	c := start(t).connect()
	x := wantOK[*wire.GetChildren2Response](c, wire.OpGetChildren2, &wire.GetChildrenRequest{Path: "/"})
	if !slices.Equal(x.Children, []string{"zookeeper"}) ||
		x.Stat != (znode.Stat{Cversion: -1, NumChildren: 1}) {
		t.Errorf("root: %+v", x)
	}
	n := wantOK[*wire.GetAllChildrenNumberResponse](c, wire.OpGetAllChildrenNumber,
		&wire.GetAllChildrenNumberRequest{Path: "/"})
	if n.TotalNumber != 3 {
		t.Errorf("%d below the root, want 3", n.TotalNumber)
	}
	d := wantOK[*wire.GetDataResponse](c, wire.OpGetData,
		&wire.GetDataRequest{Path: "/zookeeper/config"})
	if d.Data == nil { // Curator fails on null
		t.Error("the configuration is null, want an empty buffer at least")
	}
	c.want(znode.ErrNoAuth, wire.OpSetData, set("/zookeeper/config"))
}

// 36. and 37. Sequence numbers.
func TestZKP_Create_SequenceNumbers(t *testing.T) {
	c := start(t).connect()
	c.create("/s", "")
	seq := func(want string) {
		t.Helper()
		x := wantOK[*wire.CreateResponse](c, wire.OpCreate,
			create("/s/x-", "", znode.EphemeralSequential))
		if x.Path != "/s/x-"+want {
			t.Errorf("%s, want %s", x.Path, want)
		}
	}
	seq("0000000000")
	c.create("/s/plain", "") // advances it
	c.want(znode.OK, wire.OpDelete, &wire.DeleteRequest{Path: "/s/plain", Version: -1})
	seq("0000000002")
}

// 38.-40. and 46. Stats.
func TestZKP_Stat_Arithmetic(t *testing.T) {
	c := start(t).connect()
	h, x := c.want(znode.OK, wire.OpCreate2, create("/a", "abc", znode.Persistent))
	born := x.(*wire.Create2Response).Stat
	if got := c.stat("/a"); got != born {
		t.Errorf("create2 %+v, exists %+v", born, got)
	}
	if born.Czxid != h.Zxid || born.Mzxid != h.Zxid || born.Pzxid != h.Zxid ||
		born.Ctime != born.Mtime || born.DataLength != 3 || born.EphemeralOwner != 0 {
		t.Errorf("stat %+v, want 3 bytes without an owner, all zxids %s", born, h.Zxid)
	}
	child, _ := c.want(znode.OK, wire.OpCreate, create("/a/b", "", znode.Persistent))
	c.create("/a/b/c", "") // a grandchild is none of /a's business
	c.want(znode.OK, wire.OpSetData, set("/a/b"))
	s := c.stat("/a")
	if s.Pzxid != child.Zxid || s.Cversion != 1 || s.NumChildren != 1 || s.Version != 0 {
		t.Errorf("stat %+v, want version 0, cversion 1 and pzxid %s", s, child.Zxid)
	}
	c.want(znode.OK, wire.OpDelete, &wire.DeleteRequest{Path: "/a/b/c", Version: -1})
	gone, _ := c.want(znode.OK, wire.OpDelete, &wire.DeleteRequest{Path: "/a/b", Version: -1})
	s = c.stat("/a")
	if s.Pzxid != gone.Zxid || s.Cversion != 2 || s.NumChildren != 0 {
		t.Errorf("stat %+v, want no children, cversion 2 and pzxid %s", s, gone.Zxid)
	}
	set := wantOK[*wire.SetDataResponse](c, wire.OpSetData,
		&wire.SetDataRequest{Path: "/a", Data: []byte("abc"), Version: 0})
	if set.Stat.Version != 1 || set.Stat.Mzxid <= s.Mzxid || set.Stat.Cversion != 2 ||
		set.Stat.Pzxid != s.Pzxid {
		t.Errorf("stat %+v, want version 1 and a later mzxid; otherwise as before: %+v", set.Stat, s)
	}
}

// 41.-44. Versions, and the order of delete's checks.
func TestZKP_Write_Checks(t *testing.T) {
	c := start(t).connect()
	c.create("/a", "")
	c.create("/a/b", "")
	c.want(znode.OK, wire.OpCreate, create("/e", "", znode.Ephemeral))
	for _, x := range []struct {
		code znode.Error
		op   wire.OpCode
		body wire.Request
	}{
		{znode.ErrBadVersion, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: 7}},
		{znode.ErrNoNode, wire.OpSetData, &wire.SetDataRequest{Path: "/n", Version: 7}},
		{znode.ErrBadVersion, wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: 7}},
		{znode.ErrNotEmpty, wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: 0}},
		{znode.ErrNoNode, wire.OpDelete, &wire.DeleteRequest{Path: "/n", Version: 0}},
		{znode.ErrNoChildrenForEphemeral, wire.OpCreate, create("/e/x", "", znode.Persistent)},
		{znode.ErrNodeExists, wire.OpCreate, create("/a", "", znode.Persistent)},
		{znode.ErrBadArguments, wire.OpCreate, create("/m", "", 7)}, // 50.
		{znode.ErrBadArguments, wire.OpCreate, create("/m", "", -1)},
		{znode.ErrInvalidACL, wire.OpCreate, &wire.CreateRequest{Path: "/m"}}, // 77.
		{znode.ErrInvalidACL, wire.OpCreate, &wire.CreateRequest{Path: "/m", ACL: []znode.ACL{}}},
		{znode.ErrBadVersion, wire.OpSetACL,
			&wire.SetACLRequest{Path: "/a", ACL: znode.OpenACL, Version: 3}},
	} {
		c.want(x.code, x.op, x.body)
	}
	before := c.stat("/a")
	set := wantOK[*wire.SetACLResponse](c, wire.OpSetACL,
		&wire.SetACLRequest{Path: "/a", ACL: znode.ReadACL, Version: 0})
	before.Aversion++ // and nothing else
	if set.Stat != before {
		t.Errorf("%+v, want %+v", set.Stat, before)
	}
}

// 47. null is not empty.
func TestZKP_Data_NullIsNotEmpty(t *testing.T) {
	c := start(t).connect()
	for path, data := range map[string][]byte{"/null": nil, "/empty": {}} {
		c.want(znode.OK, wire.OpCreate, &wire.CreateRequest{Path: path, Data: data, ACL: znode.OpenACL})
		x := wantOK[*wire.GetDataResponse](c, wire.OpGetData, &wire.GetDataRequest{Path: path})
		if (x.Data == nil) != (data == nil) || x.Stat.DataLength != 0 {
			t.Errorf("%s: data %#v of length %d; want length 0, nil: %t", path, x.Data, x.Stat.DataLength, data == nil)
		}
	}
}

// 48. The order of children is stable.
func TestZKP_Children_OrderIsStable(t *testing.T) {
	c := start(t).connect()
	c.create("/p", "")
	for i := range 300 {
		c.create(fmt.Sprintf("/p/%d", (i*7919)%300), "")
	}
	get := func() []string {
		return wantOK[*wire.GetChildrenResponse](c, wire.OpGetChildren,
			&wire.GetChildrenRequest{Path: "/p"}).Children
	}
	if a, b := get(), get(); len(a) != 300 || !slices.Equal(a, b) {
		t.Errorf("%d children, equal: %v", len(a), slices.Equal(a, b))
	}
}

// 45., 49. and 92. The opcode decides the kind at top level; containers and
// TTL znodes show no owner.
func TestZKP_Create_OpcodeDecidesTheKind(t *testing.T) {
	c := start(t).connect()
	for i, x := range []struct {
		op   wire.OpCode
		mode znode.Mode
		ttl  int64
		code znode.Error
	}{
		{wire.OpCreateContainer, znode.Container, 0, znode.OK},
		{wire.OpCreateContainer, znode.Persistent, 0, znode.OK},
		{wire.OpCreate2, znode.Container, 0, znode.OK},
		{wire.OpCreate, znode.PersistentTTL, 0, znode.ErrBadArguments},
		{wire.OpCreate2, znode.PersistentSequentialTTL, 0, znode.ErrBadArguments},
		{wire.OpCreateTTL, znode.PersistentTTL, 1000, znode.OK},
		{wire.OpCreateTTL, znode.PersistentTTL, 0, znode.ErrBadArguments},
		{wire.OpCreateTTL, znode.PersistentTTL, -1, znode.ErrBadArguments},
		{wire.OpCreateTTL, znode.PersistentTTL, 1 << 40, znode.ErrBadArguments},
		{wire.OpCreateTTL, znode.PersistentTTL, 1<<40 - 1, znode.OK},
		{wire.OpCreateTTL, 9, 1000, znode.ErrBadArguments},
	} {
		path := fmt.Sprintf("/k%d", i)
		var body wire.Request = create(path, "", x.mode)
		if x.op == wire.OpCreateTTL {
			body = &wire.CreateTTLRequest{Path: path, ACL: znode.OpenACL, Mode: x.mode, TTLMillis: x.ttl}
		}
		c.want(x.code, x.op, body)
		if x.code == znode.OK && c.stat(path).EphemeralOwner != 0 {
			t.Errorf("%d: owner %s", i, c.stat(path).EphemeralOwner)
		}
	}
}

// Any client could send the reaper's command: a stranger deleted others' containers, whatever their ACLs.
func TestRegression_DeleteContainer_IsTheReapersOnly(t *testing.T) {
	c := start(t).connect()
	c.want(znode.OK, wire.OpCreateContainer, create("/k", "", znode.Container))
	c.create("/k/child", "")
	c.want(znode.OK, wire.OpDelete, &wire.DeleteRequest{Path: "/k/child", Version: -1})
	c.want(znode.ErrUnimplemented, wire.OpDeleteContainer, &wire.DeleteContainerRequest{Path: "/k"})
	c.stat("/k")
}

// 92. TTL needs the extended types.
func TestZKP_Create_TTLDisabled(t *testing.T) {
	c := start(t, func(s *serverConfig, _ *zkConfig) { s.ExtendedTypes = false }).connect()
	c.want(znode.ErrUnimplemented, wire.OpCreateTTL, &wire.CreateTTLRequest{
		Path: "/t", ACL: znode.OpenACL, Mode: znode.PersistentTTL, TTLMillis: 5})
	c.want(znode.ErrUnimplemented, wire.OpCreate, create("/t", "", znode.PersistentTTL))
	c.fence() // the connection stays
}

// 51. getEphemerals and getAllChildrenNumber.
func TestZKP_Read_EphemeralsAndDescendants(t *testing.T) {
	k := start(t)
	c := k.connect()
	c.create("/a", "")
	for _, path := range []string{"/a/1", "/a/2", "/ab"} {
		c.want(znode.OK, wire.OpCreate, create(path, "", znode.Ephemeral))
	}
	k.connect().want(znode.OK, wire.OpCreate, create("/a/other", "", znode.Ephemeral))
	all := []string{"/a/1", "/a/2", "/ab"}
	for prefix, want := range map[string][]string{
		"": all, "/": all, " \t": all, " / ": all, "/a": all, "/a/": {"/a/1", "/a/2"}, "/b": nil,
	} {
		x := wantOK[*wire.GetEphemeralsResponse](c, wire.OpGetEphemerals,
			&wire.GetEphemeralsRequest{PrefixPath: prefix})
		if !slices.Equal(x.Ephemerals, want) {
			t.Errorf("prefix %q: %v, want %v", prefix, x.Ephemerals, want)
		}
	}
	n := wantOK[*wire.GetAllChildrenNumberResponse](c, wire.OpGetAllChildrenNumber,
		&wire.GetAllChildrenNumberRequest{Path: "/a"})
	if n.TotalNumber != 3 {
		t.Errorf("%d, want 3", n.TotalNumber)
	}
	c.want(znode.ErrNoNode, wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/n"})
}

// 94. sync echoes its path, which it does not look at.
func TestZKP_Sync_EchoesThePath(t *testing.T) {
	c := start(t).connect()
	for _, path := range []string{"/", "/none", "", "anything"} {
		if x := wantOK[*wire.SyncResponse](c, wire.OpSync, &wire.SyncRequest{Path: path}); x.Path != path {
			t.Errorf("%q, want %q", x.Path, path)
		}
	}
}

// 101. A hard quota that is enforced.
func TestZKP_Quota_HardLimitRefuses(t *testing.T) {
	c := start(t, func(s *serverConfig, _ *zkConfig) { s.EnforceQuota = true }).connect()
	c.create("/q", "")
	c.create("/zookeeper/quota/q", "")
	c.create("/zookeeper/quota/q/zookeeper_limits",
		"count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=2")
	c.create("/zookeeper/quota/q/zookeeper_stats", "")
	c.create("/q/a", "")
	c.want(znode.ErrQuotaExceeded, wire.OpCreate, create("/q/b", "", znode.Persistent))
	c.want(znode.ErrQuotaExceeded, wire.OpSetData,
		&wire.SetDataRequest{Path: "/q/a", Data: make([]byte, 11), Version: -1})
	if x := c.stat("/zookeeper/quota/q/zookeeper_stats"); x.Version != 0 { // 99.
		t.Errorf("stat %+v, want version 0", x)
	}
}
