package load

import (
	"bytes"
	"slices"
	"testing"
)

func TestDrawer_Uniform_ReachesAllAlike(t *testing.T) {
	const seed, keys, n = 5, 50, 100_000
	d := newDrawer(seed, 0, keys, 0)
	count := make([]int, keys)
	for range n {
		count[d.draw()]++
	}
	for k, c := range count {
		if want := n / keys; c < want*8/10 || c > want*12/10 {
			t.Errorf("key %d was drawn %d times, want about %d (seed %d)", k, c, want, seed)
		}
	}
}

func TestDrawer_Zipf_PopularFirst(t *testing.T) {
	const seed, keys, n = 5, 1000, 100_000
	d := newDrawer(seed, 0, keys, 1.2)
	count := make([]int, keys)
	for range n {
		count[d.draw()]++
	}
	if count[0] < 10*count[20] || count[0] < n/10 || count[0] != slices.Max(count) {
		t.Errorf("key 0 was drawn %d times, key 20 %d times (seed %d)", count[0], count[20], seed)
	}
}

func TestDrawer_Seed_OneStreamAConnection(t *testing.T) {
	draw := func(seed uint64, conn int) (all []int) {
		d := newDrawer(seed, conn, 1000, 0)
		for range 20 {
			all = append(all, d.draw())
		}
		return all
	}
	if !slices.Equal(draw(1, 2), draw(1, 2)) {
		t.Error("the same seed and connection draw different keys")
	}
	if slices.Equal(draw(1, 2), draw(1, 3)) || slices.Equal(draw(1, 2), draw(2, 2)) {
		t.Error("another seed or connection draws the same keys")
	}
}

func TestKeySpace_Paths_InDirectories(t *testing.T) {
	k := newKeySpace("/a/b", 2001)
	if len(k.paths) != 2001 || len(k.dirs) != 3 || k.paths[2000] != "/a/b/d2/k2000" ||
		k.paths[999] != "/a/b/d0/k999" {
		t.Errorf("%d paths in %v, the last %s", len(k.paths), k.dirs, k.paths[2000])
	}
	if got := k.ancestors(); !slices.Equal(got, []string{"/a", "/a/b"}) {
		t.Errorf("ancestors %v", got)
	}
}

func TestValue_SameForASeed(t *testing.T) {
	if v := value(1, 100); len(v) != 100 || !bytes.Equal(v, value(1, 100)) || bytes.Equal(v, value(2, 100)) {
		t.Error("a value is not fixed by seed and size")
	}
}
