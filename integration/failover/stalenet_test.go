//go:build privileged

package failover_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// TestPartition_Stale: a server that is cut off from the others answers for as long as its state is new enough, and
// then refuses. Nothing that it shows is older than it says, though the others go on.
func TestPartition_Stale(t *testing.T) {
	t.Parallel()
	e, w, allowed := networked(t, 3)
	if !allowed {
		return
	}
	leader, followers := e.Roles()
	r := startStaleReads(t, e, followers[0])
	for _, s := range []int{followers[1].ID, leader.ID} {
		r.waitReads(e.Server(s), 50)
		w.Isolate(s)
		r.waitRefused(e.Server(s), 50)
		r.waitReads(followers[0], 50)
		w.Heal()
		e.WaitServing()
		r.waitReads(e.Server(s), 50)
	}
	r.stop()
	t.Logf("%d writes; reads %v, refused %v", len(r.acked)-1, r.reads, r.refused)
}

// waitRefused waits until a server has refused n more.
func (r *staleReads) waitRefused(s *cluster.Server, n int) { r.waitMore(s, r.refused, n) }
