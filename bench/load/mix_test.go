package load

import (
	"math"
	"math/rand/v2"
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
