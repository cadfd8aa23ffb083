package consensus

import (
	"fmt"
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
	e.leader()
	e.agree()
	for i, n := range e.nodes {
		wait.Until(t, fmt.Sprintf("server %d: no election, or that of its leader", i), func() bool {
			s := n.Status()
			return s.Election == (leadership.Election{}) || s.Election.Leader == s.Leader
		})
	}
	begin := time.Now()
	old := e.leader()
	e.must(old, "/before")
	e.agree()
	for _, n := range e.nodes { // every server that has seen two leaders serve measures the election
		wait.Until(t, "the old leader is seen to serve", func() bool {
			return n.leadership.Elections.Sign() > 0
		})
	}
	e.crash(old)
	e.must(e.leader(old), "/after")
	for i, n := range e.nodes {
		if i == old {
			continue
		}
		var got leadership.Election
		wait.Until(t, "the election is seen", func() bool { // the newest, if a pause has brought another one about
			s := n.Status()
			got = s.Election
			return got.Term > 0 && got.Term == s.Term && got.Leader == s.Leader && got.Leader != state.ServerID(old)
		})
		if got.Ended.Before(begin) || got.Outage <= 0 || got.Outage > got.Ended.Sub(begin) {
			t.Errorf("server %d: %+v, since %v", i, got, begin)
		}
	}
	last := e.nodes[e.leader(old)].Status().Term
	e.mustStart(old)
	e.agree()
	if got := e.nodes[old].Status().Election; !got.Ended.IsZero() && got.Term <= last {
		t.Errorf("a server that was away has seen no election: %+v", got)
	}
}
