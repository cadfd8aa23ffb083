package state

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// plain is a tree as the model has it: the data of each znode with its version and its last transaction.
type plain map[string]plainNode

type plainNode struct {
	data    string
	version int64
	mzxid   znode.Zxid
}

func (p plain) children(path string) (names []string) {
	for other := range p {
		if other != path && znode.Parent(other) == path {
			names = append(names, znode.Base(other))
		}
	}
	return slices.Sorted(slices.Values(names))
}

func (p plain) holds(c *znode.Condition) bool {
	n, exists := p[c.Path]
	if c.Of == znode.OfExistence {
		return exists == ((c.Number == 1) == (c.Is == znode.Equal))
	}
	have := map[znode.Attribute]int64{znode.OfVersion: n.version, znode.OfMzxid: int64(n.mzxid),
		znode.OfChildren: int64(len(p.children(c.Path)))}[c.Of] - c.Number
	if c.Of == znode.OfData {
		have = int64(strings.Compare(n.data, string(c.Data)))
	}
	return exists && map[znode.Relation]bool{znode.Equal: have == 0, znode.NotEqual: have != 0, znode.Less: have < 0,
		znode.Greater: have > 0}[c.Is]
}

// edit carries out one operation, and says what it read.
func (p plain) edit(c *Command, zxid znode.Zxid) (code znode.Error, read string) {
	n, exists := p[c.Path]
	parent := znode.Parent(c.Path)
	_, below := p[parent]
	switch {
	case c.Op == OpCreate && exists:
		return znode.ErrNodeExists, ""
	case c.Op == OpCreate && !below, c.Op != OpCreate && !exists:
		return znode.ErrNoNode, ""
	case c.Op == OpDelete && len(p.children(c.Path)) > 0:
		return znode.ErrNotEmpty, ""
	case c.Op == OpCreate:
		p[c.Path] = plainNode{data: string(c.Data), mzxid: zxid}
	case c.Op == OpDelete:
		delete(p, c.Path)
	case c.Op == OpSetData:
		p[c.Path] = plainNode{string(c.Data), n.version + 1, zxid}
	case c.Op == OpGet:
		return znode.OK, fmt.Sprint(n.data, n.version, n.mzxid)
	case c.Op == OpChildren:
		return znode.OK, fmt.Sprint(p.children(c.Path))
	}
	return znode.OK, ""
}

func (r *OpResult) said() string {
	switch {
	case r.Read == nil:
		return ""
	case r.Op == OpGet:
		return fmt.Sprint(string(r.Read.Data), int64(r.Stat.Version), r.Stat.Mzxid)
	}
	return fmt.Sprint(slices.Sorted(slices.Values(r.Read.Children)))
}

func randomBranch(rnd *rand.Rand, now plain) Command {
	paths := []string{"/a", "/b", "/a/x", "/a/y", "/b/x"}
	path := func() string { return paths[rnd.IntN(len(paths))] }
	c := Command{Op: OpBranch, Branch: new(Branch)}
	for range rnd.IntN(3) {
		x := znode.Condition{Path: path(), Is: znode.Relation(1 + rnd.IntN(4)), Number: int64(rnd.IntN(3)), Data: []byte{'a' + byte(rnd.IntN(3))}}
		switch x.Of = []znode.Attribute{znode.OfExistence, znode.OfVersion, znode.OfMzxid, znode.OfChildren, znode.OfData}[rnd.IntN(5)]; x.Of {
		case znode.OfExistence:
			x.Is, x.Number = 1+x.Is%2, x.Number%2
		case znode.OfMzxid:
			x.Number = int64(now[path()].mzxid)
		}
		c.Branch.If = append(c.Branch.If, x)
	}
	for range rnd.IntN(7) {
		c.Ops = append(c.Ops, Command{Path: path(), Data: []byte{'a' + byte(rnd.IntN(3))}, ACL: znode.OpenACL, Version: -1,
			Op: []Op{OpCreate, OpCreate, OpDelete, OpSetData, OpGet, OpChildren}[rnd.IntN(6)]})
	}
	c.Branch.Then = rnd.IntN(len(c.Ops) + 1)
	return c
}

// TestMachine_Branch_EqualsModel carries out random branches, and compares the branch that was taken, what each
// operation did and read, and that a failure changed nothing, with a model; a second machine, which is read from a
// snapshot now and then, ends in the same state.
func TestMachine_Branch_EqualsModel(t *testing.T) {
	rnd := seed.Rand(t)
	g, other := newRig(t), newRig(t)
	now := plain{"/": {}}
	seen := map[string]int{}
	for range 4000 {
		c := randomBranch(rnd, now)
		if rnd.IntN(4) == 0 {
			c = keyed(fmt.Sprint("key", rnd.IntN(1000)), c)
		}
		r := g.do(1, c)[0]
		again := other.do(1, c)[0]
		for i := range r.Multi { // their order differs without a key
			if a, b := &r.Multi[i], &again.Multi[i]; c.Key == "" && a.said() == b.said() {
				a.Read = b.Read
			}
		}
		if !sameResult(r, again) {
			t.Fatalf("%+v: %+v, at another server %+v", c, r, again)
		}
		if rnd.IntN(100) == 0 {
			other.m, _ = ReadSnapshot(bytes.NewReader(write(t, other.m)))
		}
		if r.Key != KeyFresh {
			continue
		}
		held := true
		for i := range c.Branch.If {
			held = held && now.holds(&c.Branch.If[i])
		}
		if r.Code != znode.OK || r.Then != held {
			t.Fatalf("%+v on %v: %v, conditions hold %v, want %v", c, now, r.Code, r.Then, held)
		}
		then, ops := c.Branches()
		if held {
			ops = then
		}
		next, failed := maps.Clone(now), -1
		var want []string
		for i := range ops {
			code, read := next.edit(&ops[i], r.Zxid)
			if want = append(want, read); code != znode.OK {
				failed = i
				break
			}
		}
		for i := range r.Multi {
			wantCode, wantRead := znode.OK, ""
			switch {
			case failed < 0:
				wantRead = want[i]
			case i == failed:
				wantCode, _ = maps.Clone(now).replay(ops[:i+1], r.Zxid)
			case i > failed:
				wantCode = znode.ErrRuntimeInconsistency
			}
			if x := &r.Multi[i]; x.Code != wantCode || x.said() != wantRead {
				t.Fatalf("%+v on %v: operation %d %v %q, want %v %q", ops, now, i, x.Code, x.said(), wantCode, wantRead)
			}
		}
		if len(r.Multi) != len(ops) {
			t.Fatalf("%d results of %d operations", len(r.Multi), len(ops))
		}
		seen[fmt.Sprint(held, failed < 0)]++
		if failed < 0 {
			now = next
		}
	}
	if g.m.Digest() != other.m.Digest() || len(seen) != 4 || len(now) != g.m.Tree().Size().Znodes-3 {
		t.Errorf("digests %x and %x, seen %v, %v has %d znodes", g.m.Digest(), other.m.Digest(), seen, now, g.m.Tree().Size().Znodes)
	}
}

func (p plain) replay(ops []Command, zxid znode.Zxid) (code znode.Error, read string) {
	for i := range ops {
		code, read = p.edit(&ops[i], zxid)
	}
	return code, read
}

// A znode that may not be read fails a branch that compares it, whatever other conditions are, and a read of it.
func TestMachine_Branch_NeedsREAD(t *testing.T) {
	g := newRig(t)
	hidden := create("/a")
	hidden.ACL = []znode.ACL{{Perms: znode.PermAll &^ znode.PermRead, ID: znode.Anyone}}
	g.must(1, hidden)
	of := func(path string) znode.Condition {
		return znode.Condition{Path: path, Of: znode.OfExistence, Is: znode.Equal, Number: 1}
	}
	set := Command{Op: OpSetData, Path: "/a", Version: -1}
	for i, c := range []Command{
		{Branch: &Branch{If: []znode.Condition{of("/none"), of("/a")}, Then: 1}, Ops: []Command{set, set}},
		{Branch: &Branch{If: []znode.Condition{of("/a"), of("/none")}, Then: 1}, Ops: []Command{set, set}},
		{Branch: &Branch{Then: 2}, Ops: []Command{set, {Op: OpGet, Path: "/a"}}},
		{Branch: &Branch{Then: 2}, Ops: []Command{set, {Op: OpChildren, Path: "/a"}}},
	} {
		c.Op = OpBranch
		r := g.do(1, c)[0]
		if i < 2 && (r.Code != znode.ErrNoAuth || r.Path != "/a" || r.Then || len(r.Multi) > 0) {
			t.Errorf("comparison %d: %+v, want NOAUTH of /a", i, r)
		}
		if i >= 2 && (len(r.Multi) != 2 || r.Multi[1].Code != znode.ErrNoAuth || r.Multi[1].Read != nil) {
			t.Errorf("read %d: %+v, want NOAUTH", i, r)
		}
	}
	if st, _ := g.m.Tree().Exists("/a", super); st.Version != 0 {
		t.Errorf("/a was set %d times", st.Version)
	}
}

// What a branch reads is bounded, before it is read, and by less if it has a key; then nothing happens.
func TestMachine_Branch_ReadsAreBounded(t *testing.T) {
	g := newRig(t)
	big, small := create("/big"), create("/small")
	big.Data, small.Data = make([]byte, MaxReads-readBytes), make([]byte, MaxKeyedReads-readBytes)
	g.must(1, big)
	g.must(1, small)
	for i := range 20 {
		g.must(1, create(fmt.Sprintf("/small/%020d", i)))
	}
	get, list := Command{Op: OpGet, Path: "/big"}, Command{Op: OpChildren, Path: "/small"}
	getSmall := Command{Op: OpGet, Path: "/small"}
	for name, x := range map[string]struct {
		key  string
		ops  []Command
		want znode.Error
	}{
		"all that fits":       {"", []Command{get}, znode.OK},
		"a list more":         {"", []Command{get, list}, znode.ErrSystem},
		"a Stat more":         {"", []Command{get, getSmall}, znode.ErrSystem},
		"twelve of 64 KiB":    {"", slices.Repeat([]Command{getSmall}, 12), znode.OK},
		"sixteen and a list":  {"", append(slices.Repeat([]Command{getSmall}, 16), list), znode.ErrSystem},
		"with a key":          {"a", []Command{getSmall}, znode.OK},
		"with a key, and all": {"b", []Command{getSmall, list}, znode.ErrSystem},
	} {
		c := Command{Op: OpBranch, Branch: &Branch{Then: len(x.ops) + 1}, Ops: append([]Command{create("/new")}, x.ops...)}
		if x.key != "" {
			c = keyed(x.key, c)
		}
		r := g.do(1, c)[0]
		if got := r.Multi[len(r.Multi)-1].Code; got != x.want || r.ReadBytes() > MaxReads {
			t.Errorf("%s: %v and %d bytes, want %v", name, got, r.ReadBytes(), x.want)
		}
		made := g.do(1, Command{Op: OpDelete, Path: "/new", Version: -1})[0].Code == znode.OK
		if made != (x.want == znode.OK) {
			t.Errorf("%s: the write before the reads has happened: %v", name, made)
		}
	}
	wide := create("/wide")
	g.must(1, wide)
	for i := range 300 {
		g.must(1, create(fmt.Sprint("/wide/", i)))
	}
	g.m.readRoom = readBytes + 299*childBytes
	var out OpResult
	if g.m.read(&Command{Op: OpChildren, Path: "/wide"}, &out); out.Code != znode.ErrSystem || out.Read != nil {
		t.Errorf("300 names where there is room for 299: %+v", out)
	}
}

// A branch adds to memory what the larger of its lists adds: one that makes room in the other is still refused.
func TestMachine_Branch_Growth(t *testing.T) {
	g := newRig(t)
	old := create("/old")
	old.Data = make([]byte, 1<<20)
	g.must(1, old)
	fresh := create("/fresh")
	fresh.Data = make([]byte, 1<<19)
	c := Command{Op: OpBranch, Branch: &Branch{Then: 1}, Ops: []Command{fresh, {Op: OpDelete, Path: "/old", Version: -1}}}
	for range 2 {
		if most, now := c.MaxGrowth(), g.m.Growth(&c); most < 1<<19 || now < 1<<19 || now > 3<<18 {
			t.Errorf("MaxGrowth %d, Growth %d, want those of the create", most, now)
		}
		slices.Reverse(c.Ops)
	}
	c.Ops = append(c.Ops, Command{Op: OpGet, Path: "/old"})
	if n := KeyBytes(&c); n < MaxKeyedReads || n > 2*MaxKeyedReads {
		t.Errorf("KeyBytes is %d, want what it may read, %d", n, MaxKeyedReads)
	}
}

// The result that is kept for a key has what was read then.
func TestMachine_Branch_KeyKeepsWhatWasRead(t *testing.T) {
	g := newRig(t)
	g.must(1, create("/a"))
	g.must(1, create("/a/b"))
	c := keyed("k", Command{Op: OpBranch, Branch: &Branch{Then: 2}, Ops: []Command{{Op: OpGet, Path: "/a"}, {Op: OpChildren, Path: "/a"}}})
	before := g.m.Memory()
	first := g.must(1, c)
	if grown := g.m.Memory() - before; grown < int64(first.ReadBytes()) {
		t.Errorf("memory has grown by %d bytes, want at least the %d that are kept", grown, first.ReadBytes())
	}
	g.must(1, Command{Op: OpDelete, Path: "/a/b", Version: -1})
	g.must(1, Command{Op: OpDelete, Path: "/a", Version: -1})
	g.m, _ = ReadSnapshot(bytes.NewReader(write(t, g.m)))
	if again := g.must(1, c); again.Key != KeyRepeated || !reflect.DeepEqual(first.Multi, again.Multi) || !again.Then {
		t.Errorf("first %+v, again %+v", first, again)
	}
}
