package curator_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/curator"
)

func TestParse_KnowsTheNamesOfCuratorAndKazoo(t *testing.T) {
	for name, want := range map[string]int32{
		"_c_3f2a-lock-0000000007":                        7,
		"lock-0000000000":                                0,
		"0e4cf0b6__lock__0000000012":                     12,
		"_c_3f2a-lock-2147483647":                        2147483647,
		"_c_3f2a-lock--2147483648":                       -2147483648,
		"_c_3f2a-lock--000000001":                        -1,
		"_c_lock-0000000001-lock-0000000002":             2,
		curator.Name("g", curator.Lock) + "0000000003":   3,
		strings.Repeat("ü", 9) + "-lock-" + "0000000004": 4,
	} {
		c, ok := curator.Parse(name, curator.Lock, curator.KazooLock)
		if !ok || c.Number != want || c.Name != name {
			t.Errorf("%q: %v %t, want %d", name, c, ok, want)
		}
	}
	for _, name := range []string{
		"", "lock-", "lock-7", "lock-00000000070", "lock-000000000x", "lock-+000000007",
		"lock--000000000", "lock--0000000001", "lock-9999999999", "latch-0000000001", "lock_0000000001", "-0000000001", "0000000001",
	} {
		if c, ok := curator.Parse(name, curator.Lock, curator.KazooLock); ok {
			t.Errorf("%q is in the queue as %v", name, c)
		}
	}
}

func TestOrder_FirstComeFirst(t *testing.T) {
	children := []string{
		"_c_a-lock--2147483648", "x__lock__2147483646", "other", "_c_0-lock-2147483647",
		"_c_b-lock--2147483647",
	}
	want := []string{
		"x__lock__2147483646", "_c_0-lock-2147483647", "_c_a-lock--2147483648",
		"_c_b-lock--2147483647",
	}
	for range len(children) {
		children = append(children[1:], children[0])
		var got []string
		for _, c := range curator.Order(children, curator.Lock, curator.KazooLock) {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	if all := curator.Order([]string{"other"}, curator.Lock); all != nil {
		t.Errorf("foreign znodes are in the queue: %v, want none", all)
	}
}

// The order is that of creation, whatever the GUIDs in front and wherever the 32-bit
// counter wraps; foreign znodes are left out.
func TestOrder_AcrossTheWrap(t *testing.T) {
	const seed = 1
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, start := range []int32{0, -3, math.MaxInt32 - 5, math.MinInt32} {
		var want, names []string
		for i := range int32(12) {
			name := fmt.Sprintf("_c_%08x-lock-%010d", r.Uint32(), start+i)
			if i%3 == 0 {
				name = fmt.Sprintf("%08x__lock__%010d", r.Uint32(), start+i)
			}
			want = append(want, name)
		}
		names = append(slices.Clone(want), "foreign", "lock-", "_c_x-latch-0000000001")
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var got []string
		for _, c := range curator.Order(names, curator.Lock, curator.KazooLock) {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %d: %s, want %s", start, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"_c_3f2a-lock-0000000007", "lock--2147483648", "", "__lock__"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, ok := curator.Parse(name, curator.Lock, curator.KazooLock, curator.Latch)
		if ok && (c.Name != name || len(name) < 15) {
			t.Errorf("%q reads as %v, want its own name", name, c)
		}
		curator.Order([]string{name, name + "1", "lock-0000000001"}, curator.Lock)
	})
}

func TestAhead_AndPredecessor(t *testing.T) {
	children := []string{
		"_c_d-__READ__0000000004", "_c_b-__WRIT__0000000002", "_c_c-__READ__0000000003", "_c_a-__READ__0000000001", "other",
	}
	for _, test := range []struct {
		name   string
		ahead  int
		queued bool
		any    string // whom a writer waits for
		writer string // whom a reader waits for
		about  string
	}{
		{"_c_a-__READ__0000000001", 0, true, "", "", "the first"},
		{"_c_b-__WRIT__0000000002", 1, true, "_c_a-__READ__0000000001", "", "no writer is ahead"},
		{"_c_d-__READ__0000000004", 3, true, "_c_c-__READ__0000000003", "_c_b-__WRIT__0000000002", "the last"},
		{"other", 0, false, "", "", "not in the queue"},
		{"_c_e-__READ__0000000005", 0, false, "", "", "not among the children"},
	} {
		ahead, queued := curator.Ahead(children, test.name, curator.ReadLock, curator.WriteLock)
		if len(ahead) != test.ahead || queued != test.queued {
			t.Errorf("%s: ahead are %v, queued is %t; want %d, %t", test.about, ahead, queued, test.ahead, test.queued)
		}
		if got := nameOf(curator.Predecessor(ahead)); got != test.any {
			t.Errorf("%s: the predecessor is %q, want %q", test.about, got, test.any)
		}
		if got := nameOf(curator.Predecessor(ahead, curator.WriteLock)); got != test.writer {
			t.Errorf("%s: the last writer ahead is %q, want %q", test.about, got, test.writer)
		}
	}
}

func nameOf(w *curator.Waiter) string {
	if w == nil {
		return ""
	}
	return w.Name
}
