package line_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/api/line"
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
		line.Name("g", line.Lock) + "0000000003":         3,
		strings.Repeat("ü", 9) + "-lock-" + "0000000004": 4,
	} {
		c, ok := line.Parse(name, line.Lock, line.KazooLock)
		if !ok || c.Number != want || c.Name != name {
			t.Errorf("%q: %v %t, want %d", name, c, ok, want)
		}
	}
	for _, name := range []string{
		"", "lock-", "lock-7", "lock-00000000070", "lock-000000000x", "lock-+000000007",
		"lock--000000000", "lock--0000000001", "lock-9999999999", "latch-0000000001", "lock_0000000001", "-0000000001", "0000000001",
	} {
		if c, ok := line.Parse(name, line.Lock, line.KazooLock); ok {
			t.Errorf("%q stands in the queue as %v", name, c)
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
		for _, c := range line.Order(children, line.Lock, line.KazooLock) {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	if all := line.Order([]string{"other"}, line.Lock); all != nil {
		t.Errorf("%v", all)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"_c_3f2a-lock-0000000007", "lock--2147483648", "", "__lock__"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, ok := line.Parse(name, line.Lock, line.KazooLock, line.Latch)
		if ok && (c.Name != name || len(name) < 15) {
			t.Errorf("%q: %v", name, c)
		}
		line.Order([]string{name, name + "1", "lock-0000000001"}, line.Lock)
	})
}
