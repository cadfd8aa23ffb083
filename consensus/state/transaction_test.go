package state

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

func TestMachine_DeleteAll_AllOrNothing(t *testing.T) {
	g := newRig(t)
	all := []string{"/a", "/a/b", "/a/b/c", "/a/b/d", "/a/e"}
	for _, path := range all {
		g.must(1, create(path))
	}
	mzxid := func() znode.Zxid {
		st, code := g.m.Tree().Exists("/a", nil)
		if code != znode.OK {
			t.Fatalf("exists of /a: %v, want no error", code)
		}
		return st.Mzxid
	}
	fails := func(c Command, code znode.Error, path string) {
		t.Helper()
		c.Op = OpDeleteAll
		g.rec.lines = nil
		r := g.do(1, c)[0]
		if r.Code != code || r.Path != path {
			t.Errorf("%+v: %v %q, want %v %q", c, r.Code, r.Path, code, path)
		}
		if len(g.rec.lines) != 1 {
			t.Errorf("%+v: it failed, and told of %v", c, g.rec.lines)
		}
	}
	fails(Command{Path: "/a", Version: 7}, znode.ErrBadVersion, "/a")
	fails(Command{Path: "/a", Version: -1, Mzxid: 1}, znode.ErrBadVersion, "/a")
	fails(Command{Path: "/x", Version: -1}, znode.ErrNoNode, "/x")
	fails(Command{Path: "/zookeeper", Version: -1}, znode.ErrBadArguments, "/zookeeper/config")
	fails(Command{Path: "/", Version: -1}, znode.ErrBadArguments, "/zookeeper/config")
	fails(Command{Path: "a//", Version: -1}, znode.ErrBadArguments, "a//")
	for _, path := range all {
		if _, code := g.m.Tree().Exists(path, nil); code != znode.OK {
			t.Fatalf("exists of %s: %v, want no error", path, code)
		}
	}
	before := g.m.Zxid()
	lines := g.apply(g.batch(Origin{1, 1}, Command{Op: OpDeleteAll, Path: "/a", Mzxid: mzxid(), Version: 0}))
	if n := len(lines); n != len(all)+1 {
		t.Errorf("%d lines: %v", n, lines)
	}
	if g.m.Zxid() != before+1 {
		t.Errorf("from %v to %v: not one transaction", before, g.m.Zxid())
	}
	if n := g.m.Tree().Size().Znodes; n != New().Tree().Size().Znodes {
		t.Errorf("%d znodes are left", n)
	}
}

// It takes the permission to read everything and to delete below each parent.
func TestMachine_DeleteAll_Permissions(t *testing.T) {
	owner := znode.ID{Scheme: "digest", ID: "u:h"}
	mine := func(perms znode.Perms) []znode.ACL {
		return []znode.ACL{{Perms: 31, ID: owner}, {Perms: perms, ID: znode.Anyone}}
	}
	for name, x := range map[string]struct {
		parent, child znode.Perms
		failed        string
	}{
		"nothing is in the way":        {znode.PermRead | znode.PermDelete, znode.PermRead, ""},
		"may not delete below parent":  {znode.PermRead, znode.PermRead, "/a/p"},
		"may not see what is below it": {znode.PermDelete, znode.PermRead, "/a/p"},
		"may not read the child":       {znode.PermRead | znode.PermDelete, 0, "/a/p/c"},
	} {
		g := newRig(t)
		g.must(1, create("/a"))
		for _, one := range []struct {
			path  string
			perms znode.Perms
		}{{"/a/p", x.parent}, {"/a/p/c", x.child}} {
			c := create(one.path)
			c.ACL, c.Identities = mine(one.perms), []znode.ID{owner}
			g.must(1, c)
		}
		r := g.do(1, Command{Op: OpDeleteAll, Path: "/a", Version: -1})[0]
		want := znode.ErrNoAuth
		if x.failed == "" {
			want, x.failed = znode.OK, "/a"
		}
		if r.Code != want || r.Path != x.failed {
			t.Errorf("%s: %v %q, want %v %q", name, r.Code, r.Path, want, x.failed)
		}
	}
}

func TestMachine_DeleteAll_Bound(t *testing.T) {
	g := newRig(t)
	g.must(1, create("/a"))
	for i := range MaxSubtree - 1 {
		g.must(1, create(fmt.Sprintf("/a/%d", i)))
	}
	g.must(1, create("/a/5/x"))
	if r := g.do(1, Command{Op: OpDeleteAll, Path: "/a", Version: -1})[0]; r.Code != znode.ErrNotEmpty {
		t.Errorf("%d znodes: %v", MaxSubtree+1, r.Code)
	}
	g.must(1, Command{Op: OpDelete, Path: "/a/5/x", Version: -1})
	g.must(1, Command{Op: OpDeleteAll, Path: "/a", Version: -1})
}

// The second time nothing is deleted that has come since, and the result is the first,
// whatever it was.
func TestMachine_DeleteAll_KeyGivesTheFirstResult(t *testing.T) {
	g := newRig(t)
	keyed := Command{Op: OpDeleteAll, Path: "/a", Version: -1, Flags: FlagKeyed, Key: "k"}
	for _, path := range []string{"/a", "/a/b"} {
		g.must(1, create(path))
	}
	first := g.must(1, keyed)
	for _, path := range []string{"/a", "/a/new"} {
		g.must(1, create(path))
	}
	again := g.must(2, keyed)
	if again.Key != KeyRepeated || again.Zxid != first.Zxid || again.Path != first.Path {
		t.Errorf("first %+v, then %+v", first, again)
	}
	if _, code := g.m.Tree().Exists("/a/new", nil); code != znode.OK {
		t.Errorf("the repetition has deleted what is new: %v", code)
	}
	failing := Command{Op: OpDeleteAll, Path: "/none", Version: -1, Flags: FlagKeyed, Key: "f"}
	refused := g.do(1, failing)[0]
	g.must(1, create("/none"))
	again = g.do(2, failing)[0]
	again.Key = KeyFresh
	if refused.Code != znode.ErrNoNode || !reflect.DeepEqual(again, refused) {
		t.Errorf("first %+v, then %+v", refused, again)
	}
}

// A client that may write a znode and not read it still does not overwrite by mistake.
func TestMachine_Mzxid_CountsForWhoMayNotRead(t *testing.T) {
	g := newRig(t)
	c := create("/a")
	c.ACL = []znode.ACL{{Perms: znode.PermWrite, ID: znode.Anyone}}
	g.must(1, c)
	r := g.do(1, Command{Op: OpSetData, Path: "/a", Data: []byte("late"), Version: -1, Mzxid: 1})[0]
	if r.Code != znode.ErrBadVersion {
		t.Errorf("with another mzxid: %v", r.Code)
	}
}
