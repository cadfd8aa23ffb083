package consensus

import (
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// plan is what the leader says that it will do with a server.
func (e *testEnsemble) plan(id state.ServerID) *membership.Plan {
	e.t.Helper()
	s, err := e.nodes[e.leader()].Ensemble().Status(e.longContext())
	if err != nil {
		e.t.Fatal(err)
	}
	i := slices.IndexFunc(s.Members, func(m membership.MemberStatus) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return s.Members[i].Plan
}

// A server that joins waits for its vote, and the leader says so.
func TestAutopilot_Promote_AfterTheStableTime(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	const stable = 3 * testElection
	e := newTestEnsemble(t, 3, func(c *Config) { c.Autopilot.StableTime = stable })
	leader, newcomer := e.leader(), e.room()
	begin := time.Now()
	e.mustStart(newcomer)
	e.add(leader, newcomer)
	e.waitVoters(0, 1, 2, 3)
	if took := time.Since(begin); took < stable {
		t.Errorf("it votes after %v, want %v", took, stable)
	}
	e = newTestEnsemble(t, 3, func(c *Config) { c.Autopilot.StableTime = time.Hour })
	leader, newcomer = e.leader(), e.room()
	e.add(leader, newcomer)
	wait.Until(t, "what it waits for", func() bool {
		p := e.plan(3)
		return p != nil && p.Action == "promote" && p.Waits == "it is not connected"
	})
	e.mustStart(newcomer)
	wait.Until(t, "when it votes", func() bool {
		p := e.plan(3)
		return p != nil && p.Action == "promote" && p.Waits == "" && p.In > 30*time.Minute
	})
}

// A dead server is removed after its time, but none below the floor.
func TestAutopilot_Remove_TheDeadAboveTheFloor(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	// No server that lives is out of touch for so long, and no leader loses its place, because the machine is busy.
	const after, election = 3 * time.Second, time.Second
	e := newTestEnsemble(t, 4, func(c *Config) {
		c.ElectionTimeout, c.Autopilot = election, membership.Autopilot{RemoveAfter: after, MinVoters: 3}
	})
	e.waitFormed()
	leader := e.leader()
	dead, next := (leader+1)%4, (leader+2)%4
	begin := time.Now()
	e.stop(dead)
	stay := slices.DeleteFunc([]state.ServerID{0, 1, 2, 3}, func(id state.ServerID) bool { return int(id) == dead })
	e.waitVoters(stay...)
	if took := time.Since(begin); took < after-election { // the leader looks once in that time
		t.Errorf("it was removed after %v, want %v", took, after)
	}
	e.stop(next)
	wait.Until(t, "the floor", func() bool {
		p := e.plan(state.ServerID(next))
		return p != nil && p.Action == "remove" && p.Waits != "" && p.In == 0
	})
	e.must(leader, "/goes-on")
	e.waitVoters(stay...)
}
