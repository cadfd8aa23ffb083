package cli

import "testing"

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
