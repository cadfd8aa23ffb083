package cli

import (
	"slices"
	"testing"
)

// Of two servers' causes the one counts that knows more, in whatever order they answer.
func TestExpired_Merge(t *testing.T) {
	for _, c := range [][3]string{
		{"elsewhere", "disconnected", "disconnected"},
		{"server", "disconnected", "server"},
		{"elsewhere", "elsewhere", "elsewhere"},
		{"silent", "elsewhere", "silent"},
	} {
		for i := range 2 {
			x, o := expiredSession{Cause: c[i]}, expiredSession{Cause: c[1-i]}
			if x.merge(&o); x.Cause != c[2] {
				t.Errorf("%s and %s: %s", c[i], c[1-i], x.Cause)
			}
		}
	}
}

// Of the ephemerals that went with it the first are named.
func TestExpired_Known_NamesEphemerals(t *testing.T) {
	for _, c := range []struct {
		ephemerals int
		want       []string
	}{{0, nil}, {2, []string{"took /a /b"}}, {5, []string{"took /a /b and 3 more"}}} {
		x := expiredSession{Ephemerals: c.ephemerals, Paths: []string{"/a", "/b"}[:min(c.ephemerals, 2)]}
		if got := x.known(); !slices.Equal(got, c.want) {
			t.Errorf("%d: %q, want %q", c.ephemerals, got, c.want)
		}
	}
}
