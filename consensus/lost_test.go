package consensus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// shortLog keeps few entries behind a snapshot, so that who lags gets the
// snapshot.
func shortLog(c *Config) { c.TrailingLogs = 4 }

// snapshot makes all but one server take a snapshot with everything up to now, so that any of
// them may lead when that one returns.
func (e *testEnsemble) snapshot(without int) {
	e.t.Helper()
	last := uint64(0)
	for i, x := range e.nodes {
		if i != without {
			last = max(last, x.raft.LastIndex())
		}
	}
	for i, x := range e.nodes {
		if i == without {
			continue
		}
		wait.Until(e.t, "everything applied", func() bool { return x.raft.AppliedIndex() >= last })
		err := x.raft.Snapshot().Error()
		if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			e.t.Fatal(err)
		}
	}
}

func TestEnsemble_LaggingFollower_GetsASnapshot(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, shortLog)
	e.must(0, "/a")
	e.waitFormed()
	leader := e.leader()
	lagging := (leader + 1) % 3
	e.stop(lagging)
	e.fill(leader, "/n", 50)
	e.snapshot(lagging)
	e.fill(leader, "/m", 10)
	e.mustStart(lagging)
	x := e.nodes[lagging]
	wait.Until(t, "a follower that has caught up", func() bool {
		return x.handler.restored.Load() > 1 && x.applied.Index.Load() >= e.nodes[leader].applied.Index.Load()
	})
	e.must(lagging, "/z")
	e.agree()
}

// Of the commands that a server had sent, those whose entries it will never see are Lost: their
// results are in a snapshot's state, and no one can tell them from it. Those that were not
// sent, or not applied, get their result.
func TestEnsemble_Lost_ExactlyWhatASnapshotHides(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, func(c *Config) {
		shortLog(c)
		if c.ElectionTimeout = time.Second; c.ID != 0 { // a follower that raft does not reach keeps its leader
			c.ElectionTimeout = time.Minute
		}
	})
	e.must(0, "/a")
	e.waitFormed()
	leader := e.leader()
	i := (leader + 1) % 3
	x := e.nodes[i]
	e.must(i, "/through")

	// raft's connections break while the stream goes on: commands reach the
	// leader, their entries do not come back.
	x.mux.CutRaft()
	var hidden []<-chan outcome
	for k := range 20 {
		hidden = append(hidden, e.propose(i, create(fmt.Sprint("/hidden", k))))
	}
	wait.Until(t, "the commands in the others' log", func() bool {
		return e.nodes[leader].handler.exists("/hidden19")
	})
	e.net.setCut(i, true) // now the stream as well
	var waiting []<-chan outcome
	for k := range 20 {
		waiting = append(waiting, e.propose(i, create(fmt.Sprint("/waiting", k))))
	}
	e.fill(leader, "/n", 50)
	e.snapshot(i)
	e.fill(leader, "/m", 10)
	for k, o := range append(hidden, waiting...) {
		if len(o) > 0 {
			t.Fatalf("command %d has an outcome that this server cannot know: %+v", k, <-o)
		}
	}
	x.mux.RestoreRaft()
	e.net.setCut(i, false)
	for k, o := range hidden {
		if got := e.await("a hidden command", o); !got.lost {
			t.Errorf("hidden command %d: %v, want Lost", k, got.Code)
		}
	}
	for k, o := range waiting {
		if got := e.await("a waiting command", o); got.lost || got.Code != znode.OK {
			t.Errorf("waiting command %d: lost %v, %v", k, got.lost, got.Code)
		}
	}
	e.agree()
}

// What has no result when the server closes is Lost, once, and Propose says so
// from then on.
func TestNode_Close_LosesWhatIsPending(t *testing.T) {
	t.Parallel()
	e := prepare(t, 3, func(c *Config) { c.MaxPending = 10 })
	e.mustStart(0) // alone: nothing can be agreed on
	x := e.nodes[0].Node
	var outcomes []<-chan outcome
	for k := range 10 {
		outcomes = append(outcomes, e.propose(0, create(fmt.Sprint("/k", k))))
	}
	if s := x.Status(); s.Pending != 10 || s.Role != RoleNone || s.Contact != membership.NoContact || s.Voters != 3 {
		t.Errorf("status %+v", s)
	}
	blocked := make(chan error, 1)
	go func() { blocked <- x.Propose(create("/more"), ignore{}, forward.From{}) }()
	if err := x.Propose(&state.Command{Op: state.OpExpireSession, Session: 1}, ignore{}, forward.From{}); err != nil {
		t.Errorf("the ensemble's own command: %v", err)
	}
	if len(blocked) > 0 {
		t.Errorf("more than MaxPending was taken: %v", <-blocked)
	}
	e.stop(0)
	for k, o := range outcomes {
		if got := e.await("a pending command", o); !got.lost {
			t.Errorf("command %d: %v, want Lost", k, got.Code)
		}
		if len(o) > 0 {
			t.Errorf("command %d was reported twice", k)
		}
	}
	if err := <-blocked; !errors.Is(err, forward.ErrStopped) {
		t.Errorf("the call that waited: %v, want forward.ErrStopped", err)
	}
	if err := x.Propose(create("/late"), ignore{}, forward.From{}); !errors.Is(err, forward.ErrStopped) {
		t.Errorf("after Close: %v, want forward.ErrStopped", err)
	}
}

// slowRestore is a handler of a server that takes long to restore what came from the leader.
type slowRestore struct {
	*testHandler
	since   uint64        // the index that this server has itself
	begun   chan struct{} // one for each such snapshot
	restore chan struct{}
}

func (h *slowRestore) StateReplaced(m *state.Machine) {
	if m.Index() > h.since {
		h.begun <- struct{}{}
		<-h.restore
	}
	h.testHandler.StateReplaced(m)
}

// A leader that takes snapshots more often than a follower can restore one waits with the next until
// the follower has caught up. It went on once, and the follower was sent one after the other.
func TestEnsemble_LaggingFollower_RestoresSlowly_IsSentOneSnapshot(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	const every = 20
	often := func(c *Config) { shortLog(c); c.SnapshotCommands = every }
	e := newTestEnsemble(t, 3, often)
	e.must(0, "/a")
	e.waitFormed()
	// more is how many further snapshots the follower was sent, or -1 if the one was given up: on a
	// machine so slow that raft's request took longer than it may, or that another was elected.
	more := func(round int) int {
		leader := e.leader()
		term := e.nodes[leader].raft.CurrentTerm()
		lagging := (leader + 1) % 3
		slow := &slowRestore{
			since: e.nodes[lagging].raft.LastIndex(), begun: make(chan struct{}, 100), restore: make(chan struct{}),
		}
		e.stop(lagging)
		e.fill(leader, fmt.Sprintf("/n%d-", round), 2*every)
		e.snapshot(lagging)
		e.change = func(c *Config) {
			often(c)
			slow.testHandler = c.Handler.(*testHandler)
			c.Handler = slow
		}
		e.mustStart(lagging)
		<-slow.begun
		begun := time.Now()
		e.fill(leader, fmt.Sprintf("/m%d-", round), 2*every)
		took := time.Since(begun)
		close(slow.restore)
		e.must(lagging, fmt.Sprintf("/z%d", round))
		if took > transport.DefaultTimeout/2 || e.nodes[leader].raft.CurrentTerm() != term {
			return -1
		}
		return len(slow.begun)
	}
	n := -1
	for round := 0; n < 0; round++ {
		n = more(round)
	}
	if n > 0 {
		t.Errorf("the follower was sent %d more snapshots", n)
	}
	e.agree()
	leader := e.leader()
	first := func() uint64 { i, _ := e.nodes[leader].cfg.Storage.Log.FirstIndex(); return i }
	before := first()
	e.fill(leader, "/o", 2*every)
	wait.Until(t, "the leader shortens its log again", func() bool { return first() > before })
}
