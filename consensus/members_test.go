package consensus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// room makes a place for one more server, which only it has in its configuration.
// Nothing else may use the ensemble meanwhile: load begins after it.
func (e *testEnsemble) room() int {
	i := len(e.servers)
	addr := fmt.Sprintf("127.0.0.1:%d", ports.Take(e.t, 1)[0])
	e.servers = append(slices.Clone(e.servers), membership.Server{ID: state.ServerID(i), Addr: addr, Voter: true})
	e.net.mu.Lock()
	e.net.addr[addr] = i
	e.net.mu.Unlock()
	e.nodes = append(e.nodes, &testNode{dir: e.t.TempDir(), fatal: make(chan error, 8)})
	return i
}

func (e *testEnsemble) longContext() context.Context {
	ctx, cancel := context.WithTimeout(e.t.Context(), wait.Patience)
	e.t.Cleanup(cancel)
	return ctx
}

func (e *testEnsemble) add(through, i int) {
	e.t.Helper()
	addr := e.servers[i].Addr
	m := state.Member{ID: e.servers[i].ID, Peer: addr + ":0", Addr: addr, Vote: true}
	wait.Until(e.t, "a server to be added", func() bool {
		err := e.nodes[through].Ensemble().AddServer(e.longContext(), m)
		if err != nil && !errors.Is(err, membership.ErrNoLeader) {
			e.t.Fatal(err)
		}
		return err == nil
	})
}

func (e *testEnsemble) remove(through, i int, force bool) error {
	return e.nodes[through].Ensemble().RemoveServer(e.longContext(), e.servers[i].ID, force)
}

// mustRemove removes a server that can be spared. It asks again while there is no leader, and while the leader has too
// few connections, as it has for a moment after an election, which a busy machine may have at any time.
func (e *testEnsemble) mustRemove(through, i int) {
	e.t.Helper()
	wait.Until(e.t, "a server to be removed", func() bool {
		err := e.remove(through, i, false)
		if err != nil && !errors.Is(err, membership.ErrTooFew) && !errors.Is(err, membership.ErrNoLeader) {
			e.t.Fatal(err)
		}
		return err == nil
	})
}

// handOver has a server lead. It asks again while that one does not: on a machine that was busy for a moment, it may
// have lost its place again, or no server may have led for long.
func (e *testEnsemble) handOver(through, to int) {
	e.t.Helper()
	wait.Until(e.t, fmt.Sprintf("server %d to lead", to), func() bool {
		err := e.nodes[through].Ensemble().TransferTo(e.longContext(), e.servers[to].ID)
		if err != nil && !errors.Is(err, membership.ErrNoLeader) {
			e.t.Fatal(err)
		}
		return e.nodes[to].Status().Role == RoleLeader
	})
}

// removeWiped stops a server, takes its disk away, and removes it. All others know of it then: one that did not would
// tell the server, when it starts, that it has lost its data.
func (e *testEnsemble) removeWiped(through, i int) {
	e.t.Helper()
	e.stop(i)
	e.wipe(i)
	e.mustRemove(through, i)
	wait.Until(e.t, "the removal on all servers", func() bool {
		return !slices.ContainsFunc(e.nodes, func(x *testNode) bool {
			return x.Node != nil && x.ensemble.Voters()[e.servers[i].ID]
		})
	})
}

func (e *testEnsemble) waitVoters(want ...state.ServerID) {
	e.t.Helper()
	wait.Until(e.t, fmt.Sprint("voters ", want), func() bool {
		for i, x := range e.nodes {
			if x.Node == nil || !slices.Contains(want, e.servers[i].ID) {
				continue
			}
			voters := x.ensemble.Voters()
			for _, id := range want {
				if !voters[id] {
					return false
				}
			}
			if len(voters) != len(want) {
				return false
			}
		}
		return true
	})
}

// A server joins, catches up and votes, and the old leader goes, while a client
// writes: nothing is lost, nothing happens twice, and the newcomer counts.
func TestEnsemble_GrowAndShrink_UnderLoad(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, nil)
	leader := e.leader()
	e.must(leader, "/load")
	through := (leader + 1) % 3
	newcomer := e.room()
	stop := make(chan struct{})
	var load sync.WaitGroup
	written := 0
	load.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			path := fmt.Sprint("/load/", written)
			o := e.await(path, e.propose(through, create(path)))
			if o.lost || o.Code != znode.OK {
				t.Errorf("%s: lost %v, %v", path, o.lost, o.Code)
				return
			}
			written++
		}
	})
	e.add(through, newcomer) // before it runs
	e.mustStart(newcomer)
	e.waitVoters(0, 1, 2, 3)
	e.add(through, newcomer) // again: harmless
	e.mustRemove(through, leader)
	stay := []state.ServerID{0, 1, 2, 3}
	stay = slices.Delete(stay, leader, leader+1)
	e.waitVoters(stay...)
	close(stop)
	load.Wait()
	e.stop(leader)
	e.must(newcomer, "/through-the-newcomer")
	e.agree()
	if !e.nodes[newcomer].handler.exists(fmt.Sprint("/load/", written-1)) {
		t.Error("the newcomer lacks what was written")
	}
	// With the newcomer two of three are enough.
	third := 3 - leader - through
	e.crash(third)
	e.must(through, "/two-of-three")
	e.mustStart(third)
	e.mustStart(leader) // removed: it neither serves nor disturbs
	e.must(newcomer, "/undisturbed")
	if s := e.nodes[leader].Status(); s.Role == RoleLeader {
		t.Errorf("the removed server: %+v", s)
	}
}

// Who adds a server under the id of another would have the ensemble look for that one in
// the wrong place. A server that is away may have moved.
func TestEnsemble_AddServer_UnderAnIDThatIsTaken(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, nil)
	leader := e.leader()
	through, other := (leader+1)%3, (leader+2)%3
	newcomer := e.room()
	e.mustStart(newcomer)
	e.add(through, newcomer)
	e.waitVoters(0, 1, 2, 3)
	elsewhere := state.Member{ID: 3, Addr: e.servers[other].Addr, Vote: true}
	for _, i := range []int{through, leader} {
		wait.Until(t, "a refusal", func() bool { // once the leader has its stream
			return errors.Is(e.nodes[i].Ensemble().AddServer(e.longContext(), elsewhere), membership.ErrElsewhere)
		})
		if m := e.nodes[i].Ensemble().Members()[3]; m.Addr != e.servers[newcomer].Addr {
			t.Fatalf("member %+v, want the address %s", m, e.servers[newcomer].Addr)
		}
	}
	e.stop(newcomer)
	e.must(through, "/while-it-is-away")
	addr := fmt.Sprintf("127.0.0.1:%d", ports.Take(t, 1)[0])
	e.servers[newcomer].Addr = addr
	e.net.mu.Lock()
	e.net.addr[addr] = newcomer
	e.net.mu.Unlock()
	wait.Until(t, "the leader to miss it", func() bool {
		s, err := e.nodes[leader].Ensemble().Status(e.longContext())
		return err == nil && slices.ContainsFunc(s.Members, func(m membership.MemberStatus) bool { return m.ID == 3 && !m.Connected })
	})
	e.add(through, newcomer)
	e.mustStart(newcomer)
	e.must(newcomer, "/where-it-is-now")
	e.agree()
}

// A server that was started before it is added waits, and its restart needs no configuration
// but its own.
func TestEnsemble_AddServer_ThatIsWaiting(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, nil)
	e.leader()
	newcomer := e.room()
	e.mustStart(newcomer)
	select {
	case <-e.nodes[newcomer].Ready():
		t.Fatal("it takes part although nobody has added it")
	case err := <-e.nodes[newcomer].fatal:
		t.Fatal(err)
	case <-time.After(2 * testElection):
	}
	e.add(0, newcomer)
	<-e.nodes[newcomer].Ready()
	e.waitVoters(0, 1, 2, 3)
	e.must(newcomer, "/a")
	e.stop(newcomer)
	e.mustStart(newcomer)
	e.must(newcomer, "/b")
	for i := range 3 { // they learn its address from their disks
		e.stop(i)
	}
	for i := range 3 {
		e.mustStart(i)
	}
	e.must(newcomer, "/c")
	e.agree()
	if m := e.nodes[0].Ensemble().Members()[3]; m.Addr != e.servers[newcomer].Addr || !m.Voter {
		t.Errorf("member %+v, want a voter at %s", m, e.servers[newcomer].Addr)
	}
}

// A server whose disk was lost cannot vote again, but can be removed and added.
func TestEnsemble_WipedServer_RemovedAndAdded(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, nil)
	e.waitFormed()
	lost := (e.leader() + 1) % 3
	through := (lost + 1) % 3
	e.must(through, "/a")
	e.removeWiped(through, lost)
	e.mustStart(lost)
	e.add(through, lost)
	e.waitVoters(0, 1, 2)
	e.must(lost, "/b")
	e.agree()
}

func TestNode_RemoveServer_KeepsAMajority(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, nil)
	leader := e.leader()
	down, up := (leader+1)%3, (leader+2)%3
	if err := e.nodes[leader].Ensemble().RemoveServer(e.longContext(), 9, false); !errors.Is(err, membership.ErrNoMember) {
		t.Errorf("removing a stranger: %v", err)
	}
	if err := e.nodes[up].Ensemble().TransferTo(e.longContext(), 9); !errors.Is(err, membership.ErrNoMember) {
		t.Errorf("a stranger as leader: %v", err)
	}
	e.must(leader, "/a")
	wait.Succeeds(t, "one of three can stop", func() error { // once the leader has their streams
		return e.nodes[up].Ensemble().CheckStop(e.longContext())
	})
	e.crash(down)
	wait.Until(t, "the leader to see it", func() bool { return e.nodes[e.leader()].Status().Followers == 1 })
	for _, through := range []int{leader, up} {
		if err := e.nodes[through].Ensemble().CheckStop(e.longContext()); !errors.Is(err, membership.ErrTooFew) {
			t.Errorf("one of the two that are left may not stop: %v", err)
		}
		if err := e.remove(through, up, false); !errors.Is(err, membership.ErrTooFew) {
			t.Errorf("removing one of two that are left: %v", err)
		}
	}
	e.mustRemove(up, down)
	e.waitVoters(e.servers[leader].ID, e.servers[up].ID)
	e.must(up, "/b")
	e.handOver(up, up)
	e.must(leader, "/c")
}

func TestNode_AddServer_RefusesNonsense(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 1, nil)
	e.leader()
	if err := e.nodes[0].Ensemble().AddServer(t.Context(), state.Member{ID: 2, Addr: "x:1"}); !errors.Is(err, membership.ErrStandalone) {
		t.Errorf("a lone server: %v", err)
	}
	three := newTestEnsemble(t, 3, nil)
	three.leader()
	for _, m := range []state.Member{{ID: 255, Addr: "x:1"}, {ID: 4}} {
		if err := three.nodes[0].Ensemble().AddServer(t.Context(), m); err == nil {
			t.Errorf("%+v was added", m)
		}
	}
}

// Without a majority the outcome of a change was said to be unknown, although no leader had ever been asked; and a token
// or a level that was asked for came into being when the others were back.
func TestRegression_Members_WithoutALeader_NothingIsDone(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newKeyed(t, 3)
	e.must(0, "/a")
	e.waitBound(0, 1, 2)
	e.waitFormed()
	left := e.leader()
	wait.Until(t, "the first level", func() bool { return e.nodes[left].applied.Level() > 0 })
	for i := range 3 {
		if i != left {
			e.stop(i)
		}
	}
	x := e.nodes[left]
	wait.Until(t, "the end of its leadership", func() bool { return x.Status().Leader == state.NoServer })
	before := x.Status().Pending // of the server's own
	for name, ask := range map[string]func(context.Context) error{
		"add": func(ctx context.Context) error {
			return x.Ensemble().AddServer(ctx, state.Member{ID: 9, Addr: "127.0.0.1:1", Peer: "127.0.0.1:1:1"})
		},
		"remove": func(ctx context.Context) error {
			return x.Ensemble().RemoveServer(ctx, state.ServerID((left+1)%3), true)
		},
		"transfer": func(ctx context.Context) error { return x.Ensemble().TransferTo(ctx, state.NoServer) },
		"stop":     x.Ensemble().CheckStop,
		"level":    func(ctx context.Context) error { return x.Ensemble().RaiseLevel(ctx, x.applied.Level()) },
		"token": func(ctx context.Context) error {
			_, _, err := x.Ensemble().NewToken(ctx, state.ServerID((left+1)%3))
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := ask(ctx); !errors.Is(err, membership.ErrNoLeader) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if n := x.Status().Pending; n > before {
		t.Errorf("%d commands wait for a leader, %d before", n, before)
	}
}
