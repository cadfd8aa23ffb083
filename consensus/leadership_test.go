package consensus

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// A write before and one after enclose what the survivors measure.
func TestElections_ALeaderDies(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	old := e.leader()
	e.agree()
	for i, n := range e.nodes {
		if got := n.Status().Election; got != (leadership.Election{}) && got.Leader != state.ServerID(old) {
			t.Errorf("server %d, before: %+v", i, got)
		}
	}
	begin := time.Now()
	e.must(old, "/before")
	e.agree()
	for _, n := range e.nodes { // every server that has seen two leaders serve measures the election
		wait.Until(t, "the old leader is seen to serve", func() bool {
			return n.leadership.Elections.Sign() > 0
		})
	}
	e.crash(old)
	now := e.leader(old)
	e.must(now, "/after")
	for i, n := range e.nodes {
		if i == old {
			continue
		}
		var got leadership.Election
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
