//go:build privileged

package failover_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const clockPace = 2 * time.Millisecond

// TestClock_WallJumps moves the wall clocks of single servers by hours and years, back
// and forth, under load and over restarts. Nothing that matters may depend on them: no
// session expires, no write is lost, zxids rise, and session ids stay unique.
func TestClock_WallJumps(t *testing.T) {
	t.Setenv(cluster.BinaryVariable, cluster.BuildWithClock(t))
	clocks := map[int]*cluster.Clock{}
	for id := 1; id <= 3; id++ {
		clocks[id] = cluster.NewClock(t, id)
	}
	e := start(t, 3, cluster.Options{Wrap: func(id int) []string {
		return []string{"env", clocks[id].Env()}
	}})
	l := startPacedLoad(t, e, "/clock", clockPace)
	ids := map[znode.SessionID]bool{}
	const hour = time.Hour
	for round, offset := range []time.Duration{hour, -hour, 24 * 365 * hour, -24 * 365 * hour, 0} {
		leader := e.Leader()
		for i, s := range e.Servers() {
			// All of them, the leader, or the others.
			if round%3 == 0 || (round%3 == 1) == (s == leader) {
				clocks[s.ID].Jump(t, offset+time.Duration(i)*time.Minute)
			}
		}
		owner := sessionWithEphemeral(t, leader, fmt.Sprintf("/clock/mine-%d", round))
		l.waitProgress(30)
		leader.Restart()
		e.WaitServing()
		l.waitProgress(30)
		for _, s := range e.Servers() {
			for range 20 {
				c := s.Connect(t, cluster.ConnectOptions{})
				if ids[c.Session.ID] {
					t.Errorf("session %v is given twice", c.Session.ID)
				}
				ids[c.Session.ID] = true
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		stillThere(t, e, owner, fmt.Sprintf("/clock/mine-%d", round))
	}
	checkClockMoved(t, e)
	l.check()
	e.CheckReplicas()
}

// sessionWithEphemeral has the longest timeout, for restarts to go by.
func sessionWithEphemeral(t *testing.T, s *cluster.Server, path string) cluster.Session {
	t.Helper()
	c := s.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
	if _, err := c.Do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: znode.OpenACL,
		Mode: znode.Ephemeral}); err != nil {
		t.Fatal(err)
	}
	session := c.State()
	c.Drop()
	return session
}

// stillThere comes back to a session, which must live, as must its ephemeral.
func stillThere(t *testing.T, e *cluster.Ensemble, session cluster.Session, path string) {
	t.Helper()
	wait.Succeeds(t, "the session goes on", func() error {
		c, err := cluster.Dial(e.Server(2).Addr(), cluster.ConnectOptions{Timeout: sessionTimeout,
			Session: session})
		if errors.Is(err, cluster.ErrExpired) {
			t.Fatalf("the session of %s has expired", path)
		}
		if err != nil {
			return err
		}
		if _, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: path}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return c.Close()
	})
}

// checkClockMoved checks that the clocks are the servers': the time of a znode is the leader's.
func checkClockMoved(t *testing.T, e *cluster.Ensemble) {
	t.Helper()
	c := e.Leader().Connect(t, cluster.ConnectOptions{})
	body, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: "/clock"})
	if err != nil {
		t.Fatal(err)
	}
	began := body.(*wire.ExistsResponse).Stat.Ctime
	far := false
	for _, z := range e.Server(1).Dump(t) {
		if d := z.Stat.Ctime - began; d > (30*time.Minute).Milliseconds() || d < -(30*time.Minute).Milliseconds() {
			far = far || z.Path != "/" && z.Stat.Ctime != 0
		}
	}
	if !far {
		t.Error("no znode has a time of a moved clock: nothing was shown")
	}
}

// TestClock_OtherMonotonicClock restarts servers as if their machines had been up for
// years, or just begun: each in a time namespace with an offset of its own.
func TestClock_OtherMonotonicClock(t *testing.T) {
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return
	}
	offset := map[int]int{1: 0, 2: 0, 3: 0}
	e := start(t, 3, cluster.Options{Wrap: func(id int) []string {
		seconds := fmt.Sprint(offset[id])
		return []string{"unshare", "--time", "--monotonic", seconds, "--boottime", seconds}
	}})
	l := startPacedLoad(t, e, "/uptime", clockPace)
	for round, s := range append(e.Servers(), e.Servers()...) {
		owner := sessionWithEphemeral(t, e.Leader(), fmt.Sprintf("/uptime/mine-%d", round))
		s.Kill()
		offset[s.ID] = 100_000_000 * (3 - round) // three years; the kernel allows no negative uptime
		if offset[s.ID] < 0 {
			offset[s.ID] = 60 * round
		}
		s.Start()
		e.WaitServing()
		l.waitProgress(20)
		stillThere(t, e, owner, fmt.Sprintf("/uptime/mine-%d", round))
	}
	l.check()
	e.CheckReplicas()
}
