package consensus

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// waitHalted waits until a server is halted, and checks why.
func (e *testEnsemble) waitHalted(i int, kind selfcheck.Kind, words ...string) {
	e.t.Helper()
	wait.Until(e.t, "a halted server", func() bool {
		return e.nodes[i].Status().Halt != nil && e.nodes[i].handler.halted.Load()
	})
	h := e.nodes[i].Status().Halt
	if h.Kind != kind {
		e.t.Fatalf("server %d: %+v", i, h)
	}
	for _, w := range words {
		if !strings.Contains(h.Reason, w) {
			e.t.Errorf("server %d is halted, but %q does not contain %q", i, h.Reason, w)
		}
	}
}

// A removed server knows it at once, when it was the leader and when it was down, too, and loses what waits there.
func TestEnsemble_RemovedServer_IsHalted(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 5, nil)
	e.must(0, "/a")
	leader := e.leader()
	follower, through, down := (leader+1)%5, (leader+2)%5, (leader+3)%5
	for _, i := range []int{follower, leader} {
		start := time.Now()
		e.mustRemove(through, i)
		e.waitHalted(i, selfcheck.Removed, "was removed from the ensemble", "add it again")
		t.Logf("server %d: halted after %v", i, time.Since(start))
		wait.Until(t, "the end of writes", func() bool {
			return errors.Is(e.nodes[i].Propose(create("/x"), ignore{}, forward.From{}), forward.ErrStopped)
		})
	}
	e.stop(down)
	e.must(through, "/b")
	e.mustRemove(through, down)
	e.mustStart(down)
	e.waitHalted(down, selfcheck.Removed)
	e.stop(follower)
	e.mustStart(follower)
	e.waitHalted(follower, selfcheck.Removed)
	e.must(through, "/c")
}

// A server that has diverged or forked knows it after a restart, and when no other runs.
func TestNode_Halt_IsRemembered(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/a")
	leader := e.leader()
	e.nodes[leader].tasks.Go(func() { e.nodes[leader].halt(selfcheck.Diverged, "a test") })
	e.waitHalted(leader, selfcheck.Diverged, "a test")
	e.must((leader+1)%3, "/b")
	for i := range 3 {
		e.stop(i)
	}
	e.mustStart(leader)
	e.waitHalted(leader, selfcheck.Diverged, "a test")
}

// After a start of all, the others have applied no more than a snapshot, of a time at which this server was not in the
// ensemble. It took their word, and was halted as removed, with its vote.
func TestRegression_SnapshotOfBefore_HaltsNobody(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.waitFormed()
	out := (e.leader() + 1) % 3
	through := (out + 1) % 3
	e.must(through, "/a")
	e.removeWiped(through, out)
	e.snapshot(out)
	e.mustStart(out)
	e.add(through, out)
	e.waitVoters(0, 1, 2)
	e.must(out, "/b")
	e.agree()
	for i := range 3 {
		e.crash(i)
	}
	for i := range 3 {
		e.mustStart(i)
	}
	e.leader()
	e.must(out, "/c")
	e.noHalt()
}
