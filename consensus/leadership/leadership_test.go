package leadership

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

func TestElections_Sign(t *testing.T) {
	start := time.Now()
	var e Elections
	for i, x := range []struct {
		leader state.ServerID
		term   uint64
		at     time.Duration
		want   Election
	}{
		{1, 3, 0, Election{}},
		{1, 3, 5, Election{}},
		{2, 5, 20, Election{2, 5, start.Add(20), 15}},
		{1, 3, 21, Election{2, 5, start.Add(20), 15}}, // from a leader that does not know yet
		{2, 5, 30, Election{2, 5, start.Add(20), 15}},
		{2, 6, 31, Election{2, 6, start.Add(31), 1}},
	} {
		e.sign(x.leader, x.term, start.Add(x.at))
		if got := e.Newest(); got != x.want {
			t.Errorf("%d: %+v, want %+v", i, got, x.want)
		}
	}
}
