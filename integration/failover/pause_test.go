package failover_test

import (
	"errors"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// TestFailover_FollowerPaused: a paused follower blocks no one and catches up.
func TestFailover_FollowerPaused(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	l := startLoad(t, e, "/paused")
	l.waitProgress(50)
	follower := e.Followers()[0]
	at := time.Now()
	follower.Pause()
	others := withoutHome(l, follower)
	others.waitProgress(200)
	gap, single := others.gap(at)
	t.Logf("nobody got an answer for %v, a client of another server for %v", gap, single)
	if gap > generousGap {
		t.Errorf("nobody got an answer for %v", gap)
	}
	others.checkKept()
	follower.Resume()
	e.WaitServing()
	l.waitProgress(50)
	l.check()
	e.CheckReplicas()
}

// withoutHome returns the part of a load whose writers use other servers.
func withoutHome(l *load, away *cluster.Server) *load {
	part := &load{t: l.t, e: l.e, root: l.root, stop: l.stop}
	for _, w := range l.writers {
		if w.home != away {
			part.writers = append(part.writers, w)
		}
	}
	return part
}

// TestFailover_LeaderPaused: a paused leader keeps its connections open and answers nothing, so only timeouts reveal
// it. Another is elected; the old one, when it continues, must acknowledge nothing that the others do not have.
func TestFailover_LeaderPaused(t *testing.T) {
	// With the usual tick, servers disconnect clients only after 2 s without a leader.
	e := start(t, 3, cluster.Options{Config: map[string]string{"tickTime": "2000"}})
	l := startLoad(t, e, "/still")
	l.waitProgress(50)
	leader := e.Leader()
	others := withoutHome(l, leader)
	at := time.Now()
	leader.Pause()
	others.waitProgress(50)
	gap, single := others.gap(at)
	t.Logf("nobody got an answer for %v, a client that kept its connection for %v", gap, single)
	for _, w := range others.writers {
		if losses := w.endings(); len(losses) != 0 {
			t.Logf("writer %s lost its connection: %v", w.name, losses)
		}
	}
	if gap > generousGap {
		t.Errorf("nobody got an answer for %v", gap)
	}
	if now := e.Leader(); now == leader {
		t.Errorf("server %d leads while it stands still", now.ID)
	}
	leader.Resume()
	e.WaitServing()
	l.waitProgress(50)
	l.check()
	e.CheckReplicas()
}

// TestFailover_SessionMoves: a session whose server dies continues at another, with its ephemeral and nothing lost. One
// whose client does not reconnect ends, and its ephemeral with it, on all servers.
func TestFailover_SessionMoves(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	leader := e.Leader()
	c := leader.Connect(t, cluster.ConnectOptions{Timeout: 5 * time.Second})
	if _, err := c.Do(wire.OpCreate, &wire.CreateRequest{
		Path: "/mine", ACL: znode.OpenACL, Mode: znode.Ephemeral,
	}); err != nil {
		t.Fatal(err)
	}
	leader.Kill()
	<-c.Ended()
	e.Leader()
	next := e.Running()[0]
	var moved *cluster.Conn
	wait.Succeeds(t, "the session goes on elsewhere", func() (err error) {
		moved, err = cluster.Dial(next.Addr(), cluster.ConnectOptions{
			Timeout: 5 * time.Second, Session: c.State()})
		if errors.Is(err, cluster.ErrExpired) {
			t.Fatal(err)
		}
		return err
	})
	if moved.Session.ID != c.Session.ID {
		t.Fatalf("session %s became %s", c.Session.ID, moved.Session.ID)
	}
	got, err := moved.Do(wire.OpExists, &wire.ExistsRequest{Path: "/mine"})
	if err != nil || got.(*wire.ExistsResponse).Stat.EphemeralOwner != c.Session.ID {
		t.Fatalf("the ephemeral: %+v, %v", got, err)
	}
	leader.Start()
	e.WaitServing()
	moved.Drop()
	for _, s := range e.Servers() {
		w := s.Connect(t, cluster.ConnectOptions{})
		wait.Succeeds(t, "the ephemeral ends with its session", func() error {
			_, err := w.Do(wire.OpExists, &wire.ExistsRequest{Path: "/mine"})
			if errors.Is(err, znode.ErrNoNode) {
				return nil
			}
			return errors.Join(errors.New("it is still there"), err)
		})
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := cluster.Dial(next.Addr(), cluster.ConnectOptions{Session: c.State()}); !errors.Is(
		err, cluster.ErrExpired) {
		t.Errorf("coming back to an expired session: %v, want %v", err, cluster.ErrExpired)
	}
	e.CheckReplicas()
}
