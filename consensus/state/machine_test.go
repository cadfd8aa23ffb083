package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// TestMachine_Apply_Zxids: one for every transaction, failed ones included;
// none for sync, attach and what is refused; a new term starts a new high part
// and a full counter carries into it.
func TestMachine_Apply_Zxids(t *testing.T) {
	g := newRig(t)
	g.term = 3
	zxid := func(what string, r Result, want znode.Zxid) {
		t.Helper()
		if r.Zxid != want || g.m.Zxid() != max(want, g.m.Zxid()) {
			t.Errorf("%s: zxid %v, want %v", what, r.Zxid, want)
		}
	}
	zxid("first", g.must(1, create("/a")), 3<<32|1)
	zxid("failed", g.do(1, create("/a"))[0], 3<<32|2)
	zxid("sync", g.must(1, Command{Op: OpSync}), 3<<32|2)
	zxid("session", g.must(1, openSession(7)), 3<<32|3)
	zxid("same session", g.do(1, openSession(7))[0], 3<<32|4)
	zxid("attach", g.must(2, Command{Op: OpAttach, Session: 7, Password: session.Password{7}}), 3<<32|4)
	zxid("moved", g.do(1, ephemeral(7, "/e"))[0], 3<<32|4)
	zxid("unknown session", g.do(1, ephemeral(8, "/e"))[0], 3<<32|4)
	zxid("stale expiry", g.must(1, Command{Op: OpExpireSession, Session: 7, Term: 2}), 3<<32|4)
	zxid("failed multi", g.do(1, Command{Op: OpMulti, Ops: []Command{create("/a")}})[0], 3<<32|5)
	zxid("empty multi", g.must(1, Command{Op: OpMulti}), 3<<32|6)
	zxid("close", g.must(2, Command{Op: OpCloseSession, Session: 7}), 3<<32|7)
	zxid("member", g.must(1, Command{Op: OpMember, Member: Member{ID: 1, Peer: "a:1:2"}}), 3<<32|8)
	zxid("same member", g.must(1, Command{Op: OpMember, Member: Member{ID: 1, Peer: "a:1:2"}}), 3<<32|8)
	g.term = 5
	zxid("new term", g.must(1, create("/b")), 5<<32|1)
	g.m.zxid = 5<<32 | 0xffffffff
	zxid("overflow", g.must(1, create("/c")), 6<<32)
	g.term = 6
	zxid("a term that the overflow has reached", g.must(1, create("/d")), 6<<32|1)
	zxid("and again", g.must(1, create("/e")), 6<<32|2)
}

func TestMachine_Apply_DuplicatesGapsAndLives(t *testing.T) {
	g := newRig(t)
	one, two := Origin{1, 1}, Origin{1, 2}
	first := g.batch(one, create("/1"), create("/2"))
	second := g.batch(one, create("/3"))
	third := g.batch(one, create("/4"))
	count := func(what string, got []string, want ...string) {
		t.Helper()
		var short []string
		for _, l := range got {
			if f := strings.Fields(l); f[0] == "result" || f[0] == "gap" {
				short = append(short, f[0]+" "+f[3])
			}
		}
		if !slices.Equal(short, want) {
			t.Errorf("%s: %v, want %v", what, short, want)
		}
	}
	count("second before first", g.apply(second), "gap 1")
	count("first", g.apply(first), "result 1", "result 2")
	count("third before second", g.apply(third), "gap 3")
	count("all, in one entry", g.apply(first, second, first, third), "result 3", "result 4")
	count("all again", g.apply(first, second, third))
	overlap := Batch{Origin: one, First: 4, Count: 2}
	for _, c := range []Command{create("/4"), create("/5")} {
		overlap.Commands = AppendCommand(overlap.Commands, &c)
	}
	count("half new", g.apply(overlap), "result 5")
	count("a new life starts at 1", g.apply(g.batch(two, create("/6"))), "result 1")
	count("the old life", g.apply(Batch{Origin: one, First: 6, Count: 1, Commands: second.Commands}))
	if g.m.Applied(two) != 1 || g.m.Applied(one) != 0 || g.m.Incarnation(1) != 2 || g.m.Incarnation(9) != 0 {
		t.Errorf("applied %d of the new life, %d of the old", g.m.Applied(two), g.m.Applied(one))
	}
	for i := range 6 {
		if _, code := g.m.Tree().Exists(fmt.Sprintf("/%d", i+1), nil); code != znode.OK {
			t.Errorf("exists of /%d: %v, want no error", i+1, code)
		}
	}
	if st, _ := g.m.Tree().Exists("/", nil); st.NumChildren != 7 {
		t.Errorf("%d children of the root, want 7", st.NumChildren)
	}
}

// TestMachine_Session_Life: opened, used, moved, refused at the former owner,
// closed with its ephemerals in the order of their paths, by one zxid.
func TestMachine_Session_Life(t *testing.T) {
	g := newRig(t)
	s := g.must(1, openSession(7)).Session
	if s.ID != 7 || s.Owner != 1 || s.Timeout != 4*time.Second || s.Password != (session.Password{7}) {
		t.Errorf("opened %+v", s)
	}
	if got := g.rec.lines[0]; !strings.HasPrefix(got, "opened") {
		t.Errorf("told of the result before the session: %v", g.rec.lines)
	}
	for _, p := range []string{"/z", "/a", "/m"} {
		g.must(1, ephemeral(7, p))
	}
	if r := g.do(2, Command{Op: OpAttach, Session: 7, Password: session.Password{8}})[0]; r.Code != znode.ErrSessionExpired {
		t.Errorf("wrong password: %v", r.Code)
	}
	if r := g.do(2, ephemeral(7, "/b"))[0]; r.Code != znode.ErrSessionMoved {
		t.Errorf("by a server that does not own it: %v", r.Code)
	}
	r := g.must(2, Command{Op: OpAttach, Session: 7, Password: session.Password{7}, Timeout: time.Minute})
	if r.Session.Owner != 2 || r.Session.Timeout != time.Minute || !strings.HasSuffix(g.rec.lines[0], "from 1") {
		t.Errorf("attached %+v, told %v", r.Session, g.rec.lines)
	}
	for _, op := range []Op{OpSync, OpDelete, OpCloseSession, OpMulti, OpSetData} {
		if r := g.do(1, Command{Op: op, Session: 7, Path: "/z", Version: -1})[0]; r.Code != znode.ErrSessionMoved {
			t.Errorf("operation %d by the former owner: %v", op, r.Code.Name())
		}
	}
	lines := g.apply(g.batch(Origin{2, 1}, Command{Op: OpCloseSession, Session: 7}))
	var deleted []string
	for _, e := range lines {
		if f := strings.Fields(e); f[0] == "event" {
			deleted = append(deleted, f[1]+f[2]+" "+f[3])
		}
	}
	z := g.m.Zxid().String()
	want := []string{"NodeDeleted/a " + z, "NodeDeleted/m " + z, "NodeDeleted/z " + z}
	if !slices.Equal(deleted, want) || lines[3] != "closed 0x7 false" || !strings.HasPrefix(lines[4], "result") {
		t.Errorf("told %v", lines)
	}
	if r := g.do(2, ephemeral(7, "/b"))[0]; r.Code != znode.ErrSessionExpired {
		t.Errorf("after the close: %v", r.Code)
	}
	if g.m.Sessions().Len() != 0 || g.m.Tree().Size().Ephemerals != 0 {
		t.Error("something is left")
	}
}

// TestMachine_Expire_OnlyInItsTerm: a leader's decision counts in its term.
func TestMachine_Expire_OnlyInItsTerm(t *testing.T) {
	g := newRig(t)
	g.term = 4
	g.must(1, openSession(7))
	g.must(1, ephemeral(7, "/e"))
	for _, c := range []struct{ decided, applied uint64 }{{3, 4}, {5, 4}, {4, 5}} {
		g.term = c.applied
		if lines := g.apply(g.batch(Origin{2, 1}, Command{Op: OpExpireSession, Session: 7, Term: c.decided})); len(lines) != 1 {
			t.Errorf("decided in %d, applied in %d: %v", c.decided, c.applied, lines)
		}
	}
	lines := g.apply(g.batch(Origin{2, 1}, Command{Op: OpExpireSession, Session: 7, Term: 5}))
	if len(lines) != 3 || lines[1] != "closed 0x7 true" || g.m.Sessions().Len() != 0 {
		t.Errorf("told %v", lines)
	}
	if lines := g.apply(g.batch(Origin{2, 1}, Command{Op: OpExpireSession, Session: 7, Term: 5})); len(lines) != 1 {
		t.Errorf("a session that has gone: %v", lines)
	}
}

func TestMachine_Multi_Results(t *testing.T) {
	g := newRig(t)
	g.must(1, create("/a"))
	before := g.m.Digest()
	ops := []Command{create("/b"), {Op: OpCheck, Path: "/a", Version: 9}, create("/c"), {Op: OpDelete, Path: "/a"}}
	r := g.do(1, Command{Op: OpMulti, Ops: ops})[0]
	want := []OpResult{
		{Op: OpCreate}, {Op: OpCheck, Code: znode.ErrBadVersion},
		{Op: OpCreate, Code: znode.ErrRuntimeInconsistency}, {Op: OpDelete, Code: znode.ErrRuntimeInconsistency},
	}
	if r.Code != znode.OK || !slices.Equal(r.Multi, want) {
		t.Errorf("failed multi: %v %+v", r.Code, r.Multi)
	}
	for _, l := range g.rec.lines {
		if strings.HasPrefix(l, "event") {
			t.Errorf("a failed multi fired %s", l)
		}
	}
	if z := g.m.zxid; true {
		g.m.zxid = z - 1 // the failed transaction's number is all that may differ
		g.m.origins[1] = progress{1, g.m.origins[1].last - 1}
		if g.m.Digest() != before {
			t.Error("a failed multi left a trace")
		}
		g.m.zxid = z
		g.m.origins[1] = progress{1, g.m.origins[1].last + 1}
	}
	r = g.must(1, Command{Op: OpMulti, Ops: []Command{
		create("/b"),
		{Op: OpCreate, Path: "/b/s-", Mode: znode.PersistentSequential, ACL: znode.OpenACL},
		{Op: OpSetData, Path: "/b", Data: []byte("new"), Version: 0},
		{Op: OpCheck, Path: "/b", Version: 1},
		{Op: OpSetACL, Path: "/b", Version: 0, ACL: znode.OpenACL},
		{Op: OpDelete, Path: "/a", Version: 0},
	}})
	if len(r.Multi) != 6 || r.Multi[1].Path != "/b/s-0000000000" || r.Multi[2].Stat.Version != 1 ||
		r.Multi[4].Stat.Aversion != 1 || r.Multi[0].Stat.Czxid != r.Zxid {
		t.Errorf("multi %+v", r.Multi)
	}
	for _, x := range r.Multi {
		if x.Code != znode.OK {
			t.Errorf("result %+v, want OK", x)
		}
	}
}

// TestMachine_Flags_DecideForAllServers: settings travel with the command.
func TestMachine_Flags_DecideForAllServers(t *testing.T) {
	g := newRig(t)
	ttl := Command{Op: OpCreate, Path: "/t", Kind: znode.CreateTTL, Mode: znode.PersistentTTL, TTL: 5, ACL: znode.OpenACL}
	if r := g.do(1, ttl)[0]; r.Code != znode.ErrUnimplemented {
		t.Errorf("TTL without the flag: %v", r.Code.Name())
	}
	ttl.Flags = FlagExtendedTypes
	g.must(1, ttl)
	for _, p := range []string{"/q", "/zookeeper/quota/q", "/zookeeper/quota/q/zookeeper_stats"} {
		g.must(1, create(p))
	}
	limits := create("/zookeeper/quota/q/zookeeper_limits")
	limits.Data = []byte("countHardLimit=1")
	g.must(1, limits)
	c := create("/q/x")
	c.Flags = FlagEnforceQuota
	if r := g.do(1, c)[0]; r.Code != znode.ErrQuotaExceeded || g.rec.lines[0] != "quota /q" {
		t.Errorf("enforced: %v, told %v", r.Code.Name(), g.rec.lines)
	}
	g.must(1, create("/q/x"))
	if !slices.Contains(g.rec.lines, "quota /q") {
		t.Errorf("not enforced: told %v", g.rec.lines)
	}
	if r := g.do(1, ephemeral(0, "/e"))[0]; r.Code != znode.ErrBadArguments {
		t.Errorf("an ephemeral of nobody: %v", r.Code.Name())
	}
}

func TestMachine_Reap_AsTheEntrySays(t *testing.T) {
	g := newRig(t)
	c := create("/t")
	c.Flags, c.Kind, c.Mode, c.TTL = FlagExtendedTypes, znode.CreateTTL, znode.PersistentTTL, 50
	g.must(1, c)
	g.time += 50
	if r := g.do(2, Command{Op: OpReap, Path: "/t"})[0]; r.Code != znode.ErrBadVersion {
		t.Errorf("too early: %v", r.Code.Name())
	}
	g.time++
	g.must(2, Command{Op: OpReap, Path: "/t"})
}

// TestMachine_Apply_BadEntries: an entry that cannot be decoded is an error
// with its index, not a result.
func TestMachine_Apply_BadEntries(t *testing.T) {
	c := create("/a")
	good := AppendEntry(nil, 5, []Batch{{Origin: Origin{1, 1}, First: 1, Count: 1, Commands: AppendCommand(nil, &c)}})
	bad := map[string][]byte{
		"empty":          {},
		"version":        append([]byte{9}, good[1:]...),
		"short":          good[:len(good)-1],
		"behind batches": append(slices.Clone(good), 0),
		"operation": AppendEntry(nil, 5, []Batch{{Origin: Origin{1, 1}, First: 1, Count: 1,
			Commands: AppendCommand(nil, &Command{Op: 99})}}),
		"count": AppendEntry(nil, 5, []Batch{{Origin: Origin{1, 1}, First: 1, Count: 2,
			Commands: AppendCommand(nil, &c)}}),
	}
	for name, entry := range bad {
		m := New()
		err := m.Apply(77, 3, entry, &recorder{})
		if err == nil || !strings.Contains(err.Error(), "entry 77 of term 3") {
			t.Errorf("%s: error %v, want one with the entry and its term", name, err)
		}
		if m.Index() != 0 {
			t.Errorf("%s: index %d", name, m.Index())
		}
	}
}

// The entry's index and time are the state's, and a backup has them.
func TestMachine_Apply_SetsIndexAndTime(t *testing.T) {
	g := newRig(t)
	g.index, g.time = 41, 5000
	g.must(1, create("/a"))
	b, err := ReadBackup(bytes.NewReader(write(t, g.m)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := ReadSnapshot(bytes.NewReader(write(t, g.m)))
	if err != nil {
		t.Fatal(err)
	}
	if g.m.Index() != 42 || m.Index() != 42 || b.TimeMillis() != 5000 || b.Zxid() != g.m.Zxid() {
		t.Errorf("index %d, of a snapshot %d, time %d, zxid %v", g.m.Index(), m.Index(), b.TimeMillis(), b.Zxid())
	}
}

// A purge needs WRITE on the znode or, when that is gone, DELETE on the nearest one above. It is no transaction: its
// zxid stays server learns of it.
func TestMachine_Purge(t *testing.T) {
	alice := []znode.ID{{Scheme: "digest", ID: "alice:x"}}
	g := newRig(t)
	g.must(1, create("/open"))
	g.must(1, Command{Op: OpCreate, Path: "/open/hers", ACL: []znode.ACL{{Perms: znode.PermAll, ID: alice[0]}}})
	zxid := g.m.Zxid()
	for _, x := range []struct {
		path string
		by   []znode.ID
		want znode.Error
	}{
		{"/open", nil, znode.OK}, {"/open/hers", nil, znode.ErrNoAuth}, {"/open/hers", alice, znode.OK},
		{"/open/gone/too", nil, znode.OK}, {"/open/hers/gone/too", nil, znode.ErrNoAuth},
		{"/open/hers/gone", alice, znode.OK}, {"gone", nil, znode.ErrBadArguments},
	} {
		for _, below := range []bool{false, true} {
			r := g.do(1, Command{Op: OpPurge, Path: x.path, Below: below, Identities: x.by})[0]
			if told := len(g.rec.lines) == 2; r.Code != x.want || told != (x.want == znode.OK) || r.Zxid != zxid {
				t.Errorf("%s by %v: %v at %v, reported %q; want %v", x.path, x.by, r.Code, r.Zxid, g.rec.lines, x.want)
			}
		}
	}
	if g.m.Zxid() != zxid {
		t.Errorf("the zxid is %v, want %v as before", g.m.Zxid(), zxid)
	}
}
