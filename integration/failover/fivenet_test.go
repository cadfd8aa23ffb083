//go:build privileged

package failover_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
)

// TestPartition_Five parts five servers into three and two, with the leader on either side and
// with a server on both, and into five. A server that reaches a majority must continue.
func TestPartition_Five(t *testing.T) {
	t.Parallel()
	e, w, allowed := networked(t, 5)
	if !allowed {
		return
	}
	cut := network.Link{Cut: true}
	for i, test := range []struct {
		name string
		// few are cut off from the others: places in the line of the leader and its
		// followers, from 0.
		few, both []int
	}{
		{name: "the leader is with three", few: []int{1, 2}},
		{name: "the leader is with two", few: []int{0, 4}},
		{name: "a follower reaches both sides", few: []int{0, 1}, both: []int{2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := startPacedLoad(t, e, fmt.Sprintf("/five-apart-%d", i), networkPace)
			l.waitProgress(10)
			leader, followers := e.Roles()
			line := append([]*cluster.Server{leader}, followers...)
			at := time.Now()
			for _, a := range test.few {
				for b := range line {
					if !slices.Contains(test.few, b) && !slices.Contains(test.both, b) {
						w.SetBoth(line[a].ID, line[b].ID, cut)
					}
				}
			}
			if len(test.both) == 0 {
				for _, a := range test.few {
					line[a].WaitNotServing()
				}
			}
			l.waitProgress(30)
			gap, _ := l.gap(at)
			t.Logf("nobody got an answer for %v", gap)
			w.Heal()
			e.WaitServing()
			l.waitProgress(10)
			l.check()
		})
		if t.Failed() {
			break
		}
	}
	w.SetServers(cut)
	for _, s := range e.Servers() {
		s.WaitNotServing()
	}
	w.Heal()
	e.WaitServing()
	e.CheckReplicas()
}
