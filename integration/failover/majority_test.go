//go:build slow || privileged

package failover_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// TestFailover_MajorityLost kills two of three servers. The third must accept no write, elect
// no leader and report that; when the others return, everything that was acknowledged is there.
func TestFailover_MajorityLost(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	for _, leaderSurvives := range []bool{true, false} {
		t.Run(fmt.Sprintf("leader survives %v", leaderSurvives), func(t *testing.T) {
			loseMajority(t, e, leaderSurvives)
		})
	}
	e.CheckReplicas()
}

func loseMajority(t *testing.T, e *cluster.Ensemble, leaderSurvives bool) {
	root := fmt.Sprintf("/majority-%v", leaderSurvives)
	l := startLoad(t, e, root)
	l.waitProgress(50)
	last := e.Leader()
	if !leaderSurvives {
		last = e.Followers()[0]
	}
	var dead []*cluster.Server
	for _, s := range e.Servers() {
		if s != last {
			dead = append(dead, s)
		}
	}
	l.end()
	c := last.Connect(t, cluster.ConnectOptions{})
	for _, s := range dead {
		s.Kill()
	}
	write := c.Send(wire.OpCreate, &wire.CreateRequest{Path: root + "/too-late", ACL: znode.OpenACL})
	last.WaitNotServing()
	checkNotServing(t, last)
	<-c.Ended()
	if _, err := write.Wait(); !cluster.IsUnknown(err) {
		t.Errorf("a write without a majority was answered: %v", err)
	}
	wait.Steadily(t, "nobody is elected and no session opened", notice/5, func() error {
		if mode, err := last.Mode(); err == nil {
			return fmt.Errorf("mode %s", mode)
		}
		if c, err := cluster.Dial(last.Addr(), cluster.ConnectOptions{}); err == nil {
			c.Drop()
			return fmt.Errorf("a session was opened")
		}
		return nil
	})
	for _, s := range dead {
		s.Start()
	}
	e.WaitServing()
	l.check()
}

// checkNotServing checks the answers of a server without a majority to tools.
func checkNotServing(t *testing.T, s *cluster.Server) {
	t.Helper()
	for word, want := range map[string]string{
		"srvr": cluster.NotServing, "stat": cluster.NotServing, "mntr": cluster.NotServing,
		"ruok": "imok", "isro": "null",
	} {
		got, err := s.FourLetter(word)
		if err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s answers %q, %v; want %q", word, got, err, want)
		}
	}
}

// TestFailover_MinorityWritesNothing: a write that a server without a majority could not commit must not appear later
// as acknowledged. It may appear, once, as one whose outcome its client knows to be unknown.
func TestFailover_MinorityWritesNothing(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	l := startLoad(t, e, "/minority")
	l.waitProgress(20)
	leader, followers := e.Roles()
	for _, s := range followers {
		s.Kill()
	}
	leader.WaitNotServing()
	leader.Kill()
	e.StartAll()
	e.WaitServing()
	l.waitProgress(20)
	l.check()
	e.CheckReplicas()
}
