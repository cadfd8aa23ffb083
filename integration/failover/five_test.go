//go:build slow || privileged

package failover_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// TestFive_TwoKilledUnderLoad kills two of five servers at once, the leader among them: the other three keep serving,
// their clients keep their connections, and nothing is lost. Then three are killed, which leaves no majority: nothing
// is acknowledged until they are back.
func TestFive_TwoKilledUnderLoad(t *testing.T) {
	t.Parallel()
	// With the kit's short tick, a busy machine's election takes longer than servers keep
	// clients without a leader.
	e := start(t, 5, cluster.Options{Config: map[string]string{"tickTime": "2000"}})
	for round := range rounds(t, 2) {
		l := startPacedLoad(t, e, fmt.Sprintf("/five-%d", round), time.Millisecond)
		l.waitProgress(20)
		leader, followers := e.Roles()
		dead := []*cluster.Server{leader, followers[round]}
		at := time.Now()
		e.KillAll(dead...)
		l.waitProgress(30)
		gap, single := l.gap(at)
		t.Logf("two of five gone: nobody got an answer for %v, a client of a survivor for %v", gap, single)
		if gap > generousGap {
			t.Errorf("nobody got an answer for %v", gap)
		}
		l.checkKept(dead...)
		third := e.Leader()
		third.Kill()
		for _, s := range e.Running() {
			s.WaitNotServing()
		}
		third.Start()
		l.waitProgress(10)
		e.StartAll()
		e.WaitServing()
		l.waitProgress(10)
		l.check()
		e.CheckReplicas()
		if t.Failed() {
			break
		}
	}
}

// TestFive_AllKilledUnderLoad is TestFailover_AllKilledUnderLoad with five.
func TestFive_AllKilledUnderLoad(t *testing.T) {
	t.Parallel()
	e := start(t, 5, cluster.Options{})
	l := startPacedLoad(t, e, "/five-all", time.Millisecond)
	l.waitProgress(20)
	e.KillAll()
	if n := len(e.Running()); n != 0 {
		t.Fatalf("%d servers run, want none", n)
	}
	e.StartAll()
	e.WaitServing()
	l.waitProgress(20)
	l.check()
	e.CheckReplicas()
}
