package table

import (
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/lab/election"
)

func TestHSWorst_Known(t *testing.T) {
	tier.Seconds(t)
	for n, want := range map[int]int{6: 74, 7: 85, 8: 97, 9: 143} {
		ring, all := HSWorst(n, 1)
		if got := HSMessages(ring); got != want || !all {
			t.Errorf("n=%d: %v has %d messages, want %d", n, ring, got, want)
		}
	}
	for n, want := range map[int]int{16: 258, 32: 644, 64: 1564} {
		ring, all := HSWorst(n, 1)
		if got := HSMessages(ring); got < want || all {
			t.Errorf("n=%d: %d messages found, want %d or more", n, got, want)
		}
		r, err := elect(election.Config{Algorithm: "hs", IDs: ring})
		if err != nil || r.Messages.Total != HSMessages(ring) {
			t.Errorf("n=%d: a run has %d messages, the count is %d (%v)", n, r.Messages.Total, HSMessages(ring), err)
		}
	}
}
