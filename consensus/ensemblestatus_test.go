package consensus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// status asks server i for the status of the ensemble, and returns the members by their ids too.
func (e *testEnsemble) status(i int) (membership.Status, map[state.ServerID]membership.MemberStatus) {
	e.t.Helper()
	s, err := e.nodes[i].Ensemble().Status(e.longContext())
	if err != nil {
		e.t.Fatal(err)
	}
	members := map[state.ServerID]membership.MemberStatus{}
	for _, m := range s.Members {
		members[m.ID] = m
	}
	return s, members
}

func TestEnsemble_Status_EveryServerKnowsWhatTheLeaderKnows(t *testing.T) {
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/a")
	for i := range e.nodes {
		wait.Until(t, "all are connected and have all", func() bool {
			s, members := e.status(i)
			for _, m := range members {
				if !m.Connected || s.Lag(&m) > 0 || m.Contact == membership.NoContact || !m.Voter {
					return false
				}
			}
			return s.FailuresToleratedNow() == 1 && s.Voters == 3 && s.Leader == e.servers[e.leader()].ID
		})
	}
	lead := e.leader()
	down, up := (lead+1)%3, (lead+2)%3
	term := e.nodes[lead].Status().Term
	e.crash(down)
	e.must(up, "/b")
	for _, i := range []int{lead, up} {
		wait.Until(t, "one is not connected", func() bool {
			s, members := e.status(i)
			m := members[e.servers[down].ID]
			return s.FailuresToleratedNow() == 0 && s.Connected == 2 && !m.Connected && m.LastIndex == 0 &&
				(m.Contact != membership.NoContact || s.Term > term) // a later leader has never heard of it
		})
	}
	e.crash(lead)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wait.Until(t, "the last one notices", func() bool { return e.nodes[up].Status().Leader == state.NoServer })
	if s, err := e.nodes[up].Ensemble().Status(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a leader: %+v, %v", s, err)
	}
}

// A server that was cut off is as lost as one that is down, though its stream may look
// open for a while.
func TestEnsemble_Status_CutOff(t *testing.T) {
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/a")
	lead := e.leader()
	cut := (lead + 1) % 3
	e.net.setCut(cut, true)
	wait.Until(t, "it is not connected", func() bool {
		s, members := e.status(lead)
		return s.FailuresToleratedNow() == 0 && !members[e.servers[cut].ID].Connected
	})
	e.net.setCut(cut, false)
	wait.Until(t, "it is back", func() bool { s, _ := e.status(lead); return s.FailuresToleratedNow() == 1 })
}
