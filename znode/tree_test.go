package znode

import (
	"fmt"
	"maps"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/seed"
)

// TestIndex_Random_EqualsMap inserts, removes and replaces in the index and in
// a map, while copies are shared as snapshots do, each of which must keep
// showing its moment.
func TestIndex_Random_EqualsMap(t *testing.T) {
	type copied struct {
		slots [indexShards][]*node
		want  map[string]*node
	}
	r := seed.Rand(t)
	x, want := newIndex(), map[string]*node{}
	var keys []string
	var copies []copied
	for step := range 60_000 {
		n := &node{}
		switch k := r.IntN(10); {
		case k < 5+2*((step/20_000+1)%2) || len(keys) == 0: // growing and shrinking phases
			n.setBlob(fmt.Sprintf("/%d", r.IntN(1<<14)), nil)
			if want[n.path()] == nil {
				x.insert(n)
				want[n.path()], keys = n, append(keys, n.path())
			}
		case k < 9:
			i := r.IntN(len(keys))
			x.remove(keys[i])
			delete(want, keys[i])
			keys[i] = keys[len(keys)-1]
			keys = keys[:len(keys)-1]
		default:
			n.setBlob(keys[r.IntN(len(keys))], nil)
			x.replace(n)
			want[n.path()] = n
		}
		if step%10_000 == 5_000 {
			c := copied{want: maps.Clone(want)}
			for i := range x.shards {
				c.slots[i] = x.shards[i].slots
				x.shards[i].shared = true
			}
			copies = append(copies, c)
		}
	}
	var now [indexShards][]*node
	for i := range x.shards {
		now[i] = x.shards[i].slots
	}
	if x.count != len(want) {
		t.Errorf("count %d, want %d", x.count, len(want))
	}
	for path, n := range want {
		if x.get(path) != n {
			t.Errorf("%s not found", path)
		}
	}
	for i, c := range append(copies, copied{now, want}) {
		seen := 0
		for j := range c.slots {
			for _, n := range c.slots[j] {
				if n != nil {
					if seen++; c.want[n.path()] != n {
						t.Fatalf("copy %d shows %s, which is not of its moment", i, n.path())
					}
				}
			}
		}
		if seen != len(c.want) {
			t.Errorf("copy %d shows %d entries, want %d", i, seen, len(c.want))
		}
	}
}

// TestIndex_Remove_Collisions: the entries of one shard whose probe sequences
// all run into each other, removed in every order of a small set and at random
// from a large one. Backward shifting must lose none.
func TestIndex_Remove_Collisions(t *testing.T) {
	x := newIndex()
	// 24 paths of one shard whose homes lie within 5 slots of 32, at its end, so
	// that the run of entries wraps around.
	var paths []string
	for i := 0; len(paths) < 24; i++ {
		p := fmt.Sprintf("/%d", i)
		s, place := x.locate(p)
		if home := place >> 27; s == &x.shards[0] && (home >= 28 || home == 0) {
			paths = append(paths, p)
		}
	}
	r := seed.Rand(t)
	for range 60 {
		x.shards[0], x.count = shard{}, 0
		r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		in := map[string]*node{}
		for _, p := range paths {
			n := &node{}
			n.setBlob(p, nil)
			x.insert(n)
			in[p] = n
		}
		for _, k := range r.Perm(len(paths)) {
			x.remove(paths[k])
			delete(in, paths[k])
			if x.get(paths[k]) != nil {
				t.Fatalf("%s is still there", paths[k])
			}
			for p, n := range in {
				if x.get(p) != n {
					t.Fatalf("removing %s lost %s", paths[k], p)
				}
			}
		}
		for i, place := range x.shards[0].hashes {
			if place != 0 || x.shards[0].slots[i] != nil {
				t.Fatal("the empty table is not empty")
			}
		}
	}
}

// Two paths with the same hash have a slot each.
func TestTable_Find_SameHash(t *testing.T) {
	x := newTable(8)
	for _, p := range []string{"/a", "/b"} {
		n := &node{}
		n.setBlob(p, nil)
		x.put(n, 77)
	}
	a, b := x.find("/a", 77), x.find("/b", 77)
	if a < 0 || b < 0 || x.slots[a].path() != "/a" || x.slots[b].path() != "/b" || x.find("/c", 77) >= 0 {
		t.Errorf("/a in slot %d, /b in slot %d, /c in slot %d; want two slots, and none", a, b, x.find("/c", 77))
	}
}

// A full shard grows by a half or a third, so that it is never less than half full then.
func TestIndex_Grow_Lengths(t *testing.T) {
	x := newIndex()
	s := &x.shards[0]
	for _, want := range []int{8, 12, 16, 24, 32, 48, 64, 96, 128} {
		x.grow(s)
		if len(s.hashes) != want || len(s.slots) != want {
			t.Fatalf("%d hashes and %d slots, want %d", len(s.hashes), len(s.slots), want)
		}
	}
}

// Removals make room: a shard does not grow for removed entries.
func TestIndex_Remove_MakesRoom(t *testing.T) {
	x := newIndex()
	n := &node{}
	n.setBlob("/a", nil)
	s, _ := x.locate("/a")
	for range 100 {
		x.insert(n)
		x.remove("/a")
	}
	if len(s.hashes) != 8 || s.used != 0 || x.count != 0 {
		t.Errorf("%d slots, %d of them used, %d entries", len(s.hashes), s.used, x.count)
	}
}
