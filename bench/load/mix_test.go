package load

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestParseMix(t *testing.T) {
	for text, want := range map[string]string{
		"get":                           "get",
		"get=90,set=10":                 "get=90,set=10",
		"get:9 set:1":                   "get=9,set=1",
		"90% get 10% set":               "get=90,set=10",
		"90%get":                        "operation \"90%get\" is unknown",
		"90 get, 10 set":                "get=90,set=10",
		"get,set":                       "get=1,set=1",
		"get 2 set 3":                   "get=2,set=3",
		"":                              "the mix is empty",
		"fetch":                         "operation \"fetch\" is unknown",
		"event":                         "operation \"event\" is unknown",
		"get=0":                         "weight 0",
		"get=-1":                        "weight -1",
		"get=1000001":                   "weight 1000001",
		"get=1,get=2":                   "get stands twice",
		"get=1 5":                       "the weight 5 belongs to no operation",
		"5% 6% get":                     "two weights, 5 and 6",
		"create delete exists children": "create=1,delete=1,exists=1,children=1",
		"multi=2,sync=1":                "multi=2,sync=1",
	} {
		m, err := ParseMix(text)
		got := m.String()
		if err != nil {
			got = err.Error()
		}
		if (err == nil && got != want) || !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// FuzzParseMix: whatever is a mix reads back as itself.
func FuzzParseMix(f *testing.F) {
	for _, s := range []string{"get", "get=90,set=10", "90% get 10% set", "get,,=3", "%", "1 1 get"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMix(text)
		if err != nil {
			return
		}
		again, err := ParseMix(m.String())
		if err != nil || again.String() != m.String() {
			t.Errorf("%q is %s, which reads as %s, %v", text, m, again, err)
		}
		m.draw(rand.New(rand.NewPCG(1, 1)))
	})
}

func TestMix_Draw_MeetsTheShares(t *testing.T) {
	const seed, n = 3, 100_000
	m := Mix{{Get, 90}, {Set, 9}, {Create, 1}}
	r := rand.New(rand.NewPCG(seed, 0))
	count := map[Op]int{}
	for range n {
		count[m.draw(r)]++
	}
	for _, s := range m {
		want := float64(s.Weight) / 100
		if got := float64(count[s.Op]) / n; math.Abs(got-want) > 0.01 {
			t.Errorf("%s: %.3f of all, want %.2f (seed %d)", s.Op, got, want, seed)
		}
	}
}

func TestOp_Text_ReadsBack(t *testing.T) {
	for _, o := range Ops() {
		text, err := o.MarshalText()
		var again Op
		if err == nil {
			err = again.UnmarshalText(text)
		}
		if err != nil || again != o {
			t.Errorf("%s reads as %s, %v", text, again, err)
		}
	}
}

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

// TestZipf_Draw_ByItsLaw: every rank has its share, for exponents below, at and above 1, and nothing else is drawn.
func TestZipf_Draw_ByItsLaw(t *testing.T) {
	const n = 200_000
	for _, exponent := range []float64{0.5, 0.99, 1, 1.5, 3} {
		for _, bound := range []int{1, 2, 1000} {
			z, r := newZipf(exponent, bound), rand.New(rand.NewPCG(7, 7))
			count := make([]int, bound)
			for range n {
				count[z.draw(r)]++ // panics beyond
			}
			sum := 0.0
			for k := range bound {
				sum += math.Pow(float64(k+1), -exponent)
			}
			for _, k := range []int{0, 1, 2, 10, 100} {
				if k >= bound {
					break
				}
				want := n * math.Pow(float64(k+1), -exponent) / sum
				// Five standard deviations, at a fixed seed.
				if off := math.Abs(float64(count[k]) - want); off > 5*math.Sqrt(want)+1 {
					t.Errorf("exponent %g, rank %d of %d: drawn %d times, want %.0f", exponent, k, bound, count[k], want)
				}
			}
		}
	}
	z := newZipf(ycsbExponent, MaxKeys)
	for r, k := rand.New(rand.NewPCG(1, 1)), 0; k < 1000; k++ {
		if got := z.draw(r); got < 0 || got >= MaxKeys {
			t.Fatalf("drew %d of %d", got, MaxKeys)
		}
	}
}

// TestConfig_SetMix_YCSB: the workloads' shares, and an exponent that was asked for stays.
func TestConfig_SetMix_YCSB(t *testing.T) {
	for text, want := range map[string]string{"ycsb-a": "get=50,set=50", "ycsb-b": "get=95,set=5", "ycsb-c": "get",
		"ycsb-d": "get=95,create=5", "get=9,set=1": "get=9,set=1"} {
		c := Default()
		err := c.SetMix(text)
		if ycsb := text != want; err != nil || c.Mix.String() != want || (c.Zipf == 0.99) != ycsb ||
			c.Latest != (text == "ycsb-d") {
			t.Errorf("%s: %v, zipf %g, latest %t, %v, want %s", text, c.Mix, c.Zipf, c.Latest, err, want)
		}
	}
	c := Default()
	c.Zipf = 1.5
	if err := c.SetMix("ycsb-a"); err != nil || c.Zipf != 1.5 {
		t.Errorf("an exponent of 1.5 becomes %g (%v)", c.Zipf, err)
	}
	if err := c.SetMix("ycsb-e"); err == nil {
		t.Error("no error for a workload that is unknown")
	}
}

// TestRequester_Key_Latest: the newest first, but only what was answered.
func TestRequester_Key_Latest(t *testing.T) {
	cfg := Default()
	cfg.Keys, cfg.Latest, cfg.Mix = 3, true, Mix{{Get, 1}, {Create, 1}}
	q := newRequester(&cfg, newKeySpace("/p", cfg.Keys), nil, 4)
	keys := func() map[string]bool {
		all := map[string]bool{}
		for range 200 {
			all[q.key()] = true
		}
		return all
	}
	same := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(keys())); !slices.Equal(got, want) {
			t.Errorf("keys %v, want %v", got, want)
		}
	}
	same("/p/d0/k0", "/p/d0/k1", "/p/d0/k2")
	first, second := sent{op: Create, path: q.fresh()}, sent{op: Create, path: q.fresh()}
	same("/p/d0/k0", "/p/d0/k1", "/p/d0/k2")
	q.done(&first)
	same("/p/d0/k1", "/p/d0/k2", "/p/new/c4-1")
	q.done(&second)
	same("/p/d0/k2", "/p/new/c4-1", "/p/new/c4-2")
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
