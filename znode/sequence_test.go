package znode

import (
	"math"
	"testing"
)

func TestParseSequence_Examples(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int32
		ok   bool
	}{
		{"0000000007", 7, true},
		{"2147483647", math.MaxInt32, true},
		{"-2147483648", math.MinInt32, true},
		{"-000000001", -1, true}, // Java's %010d counts the sign
		{"2147483648", 0, false},
		{"", 0, false}, {"-", 0, false}, {"007", 0, false}, {"00000000070", 0, false},
		{"+000000007", 0, false}, {"0x00000007", 0, false}, {"--00000001", 0, false},
		{"-1000000000", -1_000_000_000, true}, {"-999999999", -999_999_999, true},
		{"-000000000", 0, false}, {"-0000000001", 0, false}, // no format writes these
	} {
		n, ok := ParseSequence(c.text)
		if ok != c.ok || ok && n != c.n {
			t.Errorf("%q: %d, %v; want %d, %v", c.text, n, ok, c.n, c.ok)
		}
	}
}
