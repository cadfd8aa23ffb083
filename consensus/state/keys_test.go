package state

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/znode"
)

func keyed(key string, c Command) Command {
	c.Flags |= FlagKeyed
	c.Key = key
	return c
}

// sameResult compares results except for the fields that mark a repetition.
func sameResult(a, b Result) bool {
	a.Key, b.Key = 0, 0
	return reflect.DeepEqual(a, b)
}

func TestMachine_Key_RetryGetsTheFirstResult(t *testing.T) {
	g := newRig(t)
	g.must(1, create("/a"))
	seq := create("/a/n-")
	seq.Mode = znode.PersistentSequential
	multi := Command{Op: OpMulti, Ops: []Command{create("/m"), {Op: OpDelete, Path: "/m", Version: -1}}}
	wrong := Command{Op: OpSetData, Path: "/a", Version: 7}
	branch := Command{Op: OpBranch, Branch: &Branch{Then: 3}, Ops: []Command{
		{Op: OpGet, Path: "/a"}, {Op: OpSetData, Path: "/a", Version: -1}, {Op: OpChildren, Path: "/"},
	}}
	failed := Command{Op: OpBranch, Branch: &Branch{}, Ops: []Command{{Op: OpGet, Path: "/a"}, wrong}}
	for i, c := range []Command{seq, multi, wrong, openSession(9), branch, failed} {
		key := fmt.Sprint("key", i)
		first := g.do(1, keyed(key, c))[0]
		if c.Op == OpCreateSession {
			c.Session, c.Password = 10, [len(c.Password)]byte{1} // the server's choice
		}
		c.Identities = []znode.ID{{Scheme: "ip", ID: "10.0.0.2"}} // another address than before
		again := g.do(2, keyed(key, c))[0]                        // through another server
		if first.Key != KeyFresh || again.Key != KeyRepeated || !sameResult(first, again) {
			t.Errorf("%v: first %+v, then %+v", c.Op, first, again)
		}
		if len(g.rec.lines) != 1 {
			t.Errorf("%v: the retry did %q", c.Op, g.rec.lines)
		}
		other := g.do(1, keyed(key, create("/other")))[0]
		if other.Key != KeyMismatch || other.Code != znode.ErrBadArguments {
			t.Errorf("%v: another command with the key: %+v", c.Op, other)
		}
	}
	if _, code := g.m.Tree().Exists("/other", nil); code != znode.ErrNoNode {
		t.Error("a command whose key belongs to another was applied")
	}
}

func TestMachine_Key_OfASessionThatHasEnded(t *testing.T) {
	g := newRig(t)
	g.do(1, keyed("k", openSession(9)))
	g.must(1, Command{Op: OpCloseSession, Session: 9})
	if r := g.do(1, keyed("k", openSession(9)))[0]; r.Code != znode.ErrSessionExpired {
		t.Errorf("result %+v, want %v", r, znode.ErrSessionExpired)
	}
}

func TestMachine_Key_IsForgotten(t *testing.T) {
	tier.Seconds(t)
	g := newRig(t)
	g.must(1, keyed("old", create("/old")))
	g.time += KeyLife
	if r := g.do(1, keyed("old", create("/old")))[0]; r.Code != znode.ErrNodeExists {
		t.Errorf("after its time: %+v", r)
	}
	for i := range MaxKeys + 10 {
		g.do(1, keyed(fmt.Sprint(i), Command{Op: OpDelete, Path: "/none", Version: -1}))
	}
	if n := len(g.m.keys.queue); n != MaxKeys || len(g.m.keys.byKey) != n {
		t.Errorf("%d keys are kept, %d by name, want %d", n, len(g.m.keys.byKey), MaxKeys)
	}
	big := Command{Op: OpMulti}
	for range 1000 {
		big.Ops = append(big.Ops, Command{Op: OpCheck, Path: "/old", Version: -1})
	}
	for i := range 200 {
		g.do(1, keyed(fmt.Sprint("big", i), big))
	}
	if g.m.keys.bytes > MaxKeyBytes || len(g.m.keys.queue) < 100 {
		t.Errorf("%d keys with %d bytes, bound %d", len(g.m.keys.queue), g.m.keys.bytes, MaxKeyBytes)
	}
	g.time += KeyLife
	g.do(1, keyed("last", create("/last")))
	if len(g.m.keys.queue) != 1 || len(g.m.keys.byKey) != 1 {
		t.Errorf("%d keys after all have aged", len(g.m.keys.queue))
	}
}

// What others' keys would have forgotten is known before they are sent.
func TestMachine_KeysKnownFor(t *testing.T) {
	g := newRig(t)
	for range 10 {
		g.time += 1000
		g.do(1, keyed(fmt.Sprint(g.time), Command{Op: OpDelete, Path: "/none", Version: -1}))
	}
	size := KeyBytes(&g.m.command) * 10
	if got := g.m.keys.bytes; got > size || got < size/2 {
		t.Errorf("%d bytes, reckoned with %d", got, size)
	}
	const all = KeyLife * time.Millisecond
	for _, x := range []struct {
		keys, bytes int
		later       int64 // than the last, in milliseconds
		want        time.Duration
	}{
		{MaxKeys - 10, 0, 0, all}, {MaxKeys - 9, 0, 0, 9 * time.Second}, {MaxKeys - 7, 0, 5000, 12 * time.Second},
		{MaxKeys, 0, 0, 0}, {MaxKeys, 0, -5000, 0}, {2 * MaxKeys, 0, 0, 0}, {MaxKeys, 0, 2 * KeyLife, all},
		{0, MaxKeyBytes - g.m.keys.bytes, 0, all}, {0, MaxKeyBytes - g.m.keys.bytes + 1, 0, 9 * time.Second},
		{0, MaxKeyBytes, 0, 0},
	} {
		if got := g.m.KeysKnownFor(x.keys, x.bytes, g.m.time+x.later); got != x.want {
			t.Errorf("%+v: keys are known for %v, want %v", x, got, x.want)
		}
	}
}

func TestMachine_Key_SurvivesASnapshot(t *testing.T) {
	g := newRig(t)
	seq := create("/n-")
	seq.Mode = znode.PersistentSequential
	multi := Command{Op: OpMulti, Ops: []Command{create("/m"), create("/m/x")}}
	first := g.do(1, keyed("seq", seq), keyed("multi", multi), keyed("s", openSession(9)))
	digest := g.m.Digest()
	s := g.m.Snapshot()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	s.Release()
	m, err := ReadSnapshot(&b)
	if err != nil {
		t.Fatal(err)
	}
	if m.Digest() != digest {
		t.Error("the digest has changed")
	}
	g.m = m
	again := g.do(1, keyed("seq", seq), keyed("multi", multi), keyed("s", openSession(9)))
	for i := range first {
		if again[i].Key != KeyRepeated || !sameResult(first[i], again[i]) {
			t.Errorf("first %+v, then %+v", first[i], again[i])
		}
	}
}

// A znode that was deleted and created again has the same version, but not the
// same mzxid.
func TestMachine_Guard_IsNotFooledByRecreation(t *testing.T) {
	g := newRig(t)
	seen := g.must(1, create("/a")).Stat.Mzxid
	g.must(1, Command{Op: OpDelete, Path: "/a", Version: 0})
	now := g.must(1, create("/a")).Stat.Mzxid
	for _, op := range []Op{OpSetData, OpDelete} {
		if r := g.do(1, Command{Op: op, Path: "/a", Version: -1, Mzxid: seen})[0]; r.Code != znode.ErrBadVersion {
			t.Errorf("%v with the mzxid of the former znode: %v", op, r.Code.Name())
		}
		if r := g.do(1, Command{Op: op, Path: "/none", Version: -1, Mzxid: seen})[0]; r.Code != znode.ErrNoNode {
			t.Errorf("%v of no znode: %v", op, r.Code.Name())
		}
	}
	guarded := func(mzxid znode.Zxid) Result {
		return g.do(1, Command{Op: OpMulti, Ops: []Command{
			{Op: OpCheck, Path: "/a", Version: -1, Mzxid: mzxid}, create("/b"),
		}})[0]
	}
	if r := guarded(seen); r.Multi[0].Code != znode.ErrBadVersion {
		t.Errorf("guarded by an old mzxid: %+v, want %v", r.Multi, znode.ErrBadVersion)
	}
	if r := guarded(now); r.Multi[1].Code != znode.OK {
		t.Errorf("guarded by the current mzxid: %+v, want OK", r.Multi)
	}
	g.must(1, Command{Op: OpSetData, Path: "/a", Version: 0, Mzxid: now})
}

func TestMachine_CheckAbsent(t *testing.T) {
	g := newRig(t)
	absent := Command{Op: OpMulti, Ops: []Command{{Op: OpCheckAbsent, Path: "/a"}, create("/a")}}
	if r := g.do(1, absent)[0]; r.Multi[0].Code != znode.OK || r.Multi[1].Code != znode.OK {
		t.Errorf("a path that is absent: %+v, want OK and OK", r.Multi)
	}
	if r := g.do(1, absent)[0]; r.Multi[0].Code != znode.ErrNodeExists {
		t.Errorf("a path that exists: %+v, want %v", r.Multi, znode.ErrNodeExists)
	}
	bad := Command{Op: OpMulti, Ops: []Command{{Op: OpCheckAbsent, Path: "a//"}}}
	if r := g.do(1, bad)[0]; r.Multi[0].Code != znode.ErrBadArguments {
		t.Errorf("a path that cannot be: %+v", r.Multi)
	}
	alone := Command{Op: OpCheckAbsent, Path: "/a"}
	if r := g.do(1, alone)[0]; r.Code != znode.ErrNodeExists {
		t.Errorf("alone, for a path that exists: %+v, want %v", r, znode.ErrNodeExists)
	}
}

func TestMachine_AnyServer_ServesASessionOfAnother(t *testing.T) {
	g := newRig(t)
	g.must(1, openSession(9))
	c := ephemeral(9, "/e")
	if r := g.do(2, c)[0]; r.Code != znode.ErrSessionMoved {
		t.Errorf("at another server: %+v, want %v", r, znode.ErrSessionMoved)
	}
	c.Flags |= FlagAnyServer
	if r := g.must(2, c); r.Stat.EphemeralOwner != 9 {
		t.Errorf("at another server, with the flag: %+v, want a znode that session 9 owns", r)
	}
	if r := g.do(2, Command{Op: OpCreate, Flags: FlagAnyServer, Session: 8, Path: "/f"})[0]; r.Code != znode.ErrSessionExpired {
		t.Errorf("for a session that does not exist: %+v, want %v", r, znode.ErrSessionExpired)
	}
}

// What an answer counts for is its key, its paths, and the room of its results.
func TestKeyTable_Put_CountsBytes(t *testing.T) {
	size := func(a answer) int {
		table := newKeyTable()
		if !table.put(&a) || table.bytes != a.bytes {
			t.Errorf("%+v: the table has %d bytes", a, table.bytes)
		}
		return a.bytes
	}
	base := size(answer{})
	multi := size(answer{result: Result{Multi: []OpResult{{}}}})
	if base <= 0 || multi <= base {
		t.Errorf("%d bytes, with a result %d", base, multi)
	}
	for what, a := range map[string]answer{
		"key":  {key: "12345"},
		"path": {result: Result{Path: "12345"}},
	} {
		if got := size(a); got != base+5 {
			t.Errorf("%s of 5 bytes: %d, want %d", what, got, base+5)
		}
	}
	if got := size(answer{result: Result{Multi: []OpResult{{Path: "12345"}, {Path: "1"}}}}); got != base+2*(multi-base)+6 {
		t.Errorf("two results with paths: %d", got)
	}
}

// The bytes of answers that were forgotten do not count.
func TestKeyTable_Prune_CountsBytes(t *testing.T) {
	table := newKeyTable()
	for i := range 3 {
		table.put(&answer{key: string(rune('a' + i)), time: int64(i) * KeyLife / 2})
	}
	one := table.bytes / 3
	table.prune(KeyLife)
	if len(table.byKey) != 2 || table.bytes != 2*one {
		t.Errorf("%d answers, %d bytes each, count as %d bytes", len(table.byKey), one, table.bytes)
	}
}

// An answer counts as known for half as long as it is kept.
func TestMachine_Answered(t *testing.T) {
	g := newRig(t)
	c := create("/a")
	c.Flags, c.Key = FlagKeyed, "k"
	g.must(1, c)
	for after, want := range map[int64]bool{0: true, KeyLife/2 - 1: true, KeyLife / 2: false} {
		now := g.m.time
		g.m.time += after
		if got := g.m.Answered("k"); got != want {
			t.Errorf("after %d ms: %v", after, got)
		}
		g.m.time = now
	}
	if g.m.Answered("other") {
		t.Error("a key that never came is known")
	}
}

// A request that is repeated is a part of another trace, and still the same request.
func TestKeys_OtherTrace(t *testing.T) {
	g := newRig(t)
	c := create("/a")
	c.Flags, c.Key = FlagKeyed, "k"
	c.SetTrace("00-aa-bb-01", level2)
	g.must(1, c)
	c.SetTrace("00-aa-cc-01", level2)
	if r := g.must(1, c); r.Key != KeyRepeated {
		t.Errorf("the repetition is %v, want %v", r.Key, KeyRepeated)
	}
}

// The tree is empty with what is below /zookeeper, and not with anything else.
func TestSnapshot_Empty(t *testing.T) {
	g := newRig(t)
	empty := func() bool {
		s := g.m.Snapshot()
		defer s.Release()
		if s.Empty() != g.m.Empty() {
			t.Error("the snapshot and the machine differ")
		}
		return s.Empty()
	}
	if !empty() {
		t.Error("a new tree")
	}
	g.must(1, create("/zookeeper/quota/x"))
	if !empty() {
		t.Error("with a znode below /zookeeper")
	}
	g.must(1, create("/zookeepers"))
	if empty() {
		t.Error("with a znode")
	}
}
