package consensus

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func TestElections_Sign(t *testing.T) {
	start := time.Now()
	var e elections
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
		if got := e.get(); got != x.want {
			t.Errorf("%d: %+v, want %+v", i, got, x.want)
		}
	}
}

// A write before and one after enclose what the survivors measure.
func TestElections_ALeaderDies(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	old := e.leader()
	e.agree()
	for i, n := range e.nodes {
		if got := n.Status().Election; got != (Election{}) && got.Leader != state.ServerID(old) {
			t.Errorf("server %d, before: %+v", i, got)
		}
	}
	begin := time.Now()
	e.must(old, "/before")
	e.agree()
	for _, n := range e.nodes { // an election is measured by whoever has seen two leaders serve
		wait.Until(t, "the old leader is seen to serve", func() bool {
			n.elections.mu.Lock()
			defer n.elections.mu.Unlock()
			return n.elections.term > 0
		})
	}
	e.crash(old)
	now := e.leader(old)
	e.must(now, "/after")
	for i, n := range e.nodes {
		if i == old {
			continue
		}
		var got Election
		wait.Until(t, "the election is seen", func() bool {
			got = n.Status().Election
			return got.Term > 0 && got.Leader == state.ServerID(now) // which may be 0
		})
		if got.Term != n.Status().Term || got.Ended.Before(begin) || got.Outage <= 0 || got.Outage > got.Ended.Sub(begin) {
			t.Errorf("server %d: %+v, since %v", i, got, begin)
		}
	}
	e.mustStart(old)
	e.agree()
	if got := e.nodes[old].Status().Election; !got.Ended.IsZero() {
		t.Errorf("a server that was away has seen no election: %+v", got)
	}
}
