package failover_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// The roots of the writes before and after copies of data directories were made.
const rootBefore, rootLost = "/before", "/lost"

// startChecked runs servers that compare themselves often, and let replaced disks in by a join secret.
func startChecked(t *testing.T, n int) *cluster.Ensemble {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the join secret of this test and of no other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, n, cluster.Options{Config: map[string]string{"check.interval": "500", "peer.joinSecretFile": secret}})
}

// putBack stops the ensemble, copies the data directories of some servers, lets clients write on, stops it again,
// and puts the copies back. Then no server runs.
func putBack(t *testing.T, e *cluster.Ensemble, old ...*cluster.Server) {
	t.Helper()
	loadOnce := func(root string) {
		l := startLoad(t, e, root)
		l.waitProgress(30)
		l.end()
	}
	stopAll := func() { // those first, so that the others have the committed entries without them
		for _, s := range append(slices.Clone(old), e.Servers()...) {
			if s.Running() {
				s.Stop()
			}
		}
	}
	loadOnce(rootBefore)
	e.CheckReplicas()
	stopAll()
	copies := t.TempDir()
	dir := func(s *cluster.Server) string { return filepath.Join(copies, fmt.Sprint(s.ID)) }
	for _, s := range old {
		if err := os.CopyFS(dir(s), os.DirFS(s.DataDir)); err != nil {
			t.Fatal(err)
		}
	}
	e.StartAll()
	e.WaitServing()
	loadOnce(rootLost)
	e.CheckReplicas()
	stopAll()
	for _, s := range old {
		if err := errors.Join(os.RemoveAll(s.DataDir), os.Rename(dir(s), s.DataDir)); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitAlarms waits until servers report a halted one, while they serve.
func awaitAlarms(t *testing.T, halted string, servers ...*cluster.Server) {
	t.Helper()
	for _, s := range servers {
		wait.Succeeds(t, "an alarm of the majority", func() error {
			r, err := askReady(s)
			for _, c := range r.Checks {
				if c.Name == "self_check" && !c.OK && strings.Contains(c.Detail, halted) && r.code == http.StatusOK {
					return nil
				}
			}
			return fmt.Errorf("%+v, %w", r, err)
		})
		if figure(t, s, "check_alarm") != "1" {
			t.Errorf("server %d: check_alarm is not 1", s.ID)
		}
	}
}

// figure returns one of a server's metrics, as soon as it serves: on a busy machine it may lose contact for a moment.
func figure(t *testing.T, s *cluster.Server, name string) (value string) {
	t.Helper()
	wait.Succeeds(t, "a metric", func() error {
		all, err := s.Metrics()
		if value = all[name]; err != nil || value == "" {
			return fmt.Errorf("server %d: no metric %s: %w", s.ID, name, err)
		}
		return nil
	})
	return value
}

// sees is whether clients see a znode, through one server.
func sees(t *testing.T, s *cluster.Server, path string) bool {
	t.Helper()
	c, err := client.Connect(t.Context(), s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	there, _, err := c.Exists(t.Context(), path)
	if err != nil {
		t.Fatalf("server %d: %s: %v", s.ID, path, err)
	}
	return there
}

// replaceHalted gives a halted server an empty disk: it comes back by a snapshot.
func replaceHalted(t *testing.T, e *cluster.Ensemble, s *cluster.Server) {
	t.Helper()
	s.Stop()
	s.Wipe()
	s.Start()
	e.WaitServing()
}

// The report of a server that may have the only copy.
var onlyCopy = []string{"the majority may lack writes that were acknowledged", "`zk-lite recover`"}

// TestHalt_TwoOfThreePutBack: two data directories are put back from copies, and those servers make another history.
// The third one does not join. It reports why, and names both histories and that it may have the only copy. The two
// keep serving, and report it. `zk-lite recover` makes the third one's history that of the ensemble.
func TestHalt_TwoOfThreePutBack(t *testing.T) {
	t.Parallel()
	e := startChecked(t, 3)
	old, third := e.Servers()[:2], e.Server(3)
	putBack(t, e, old...)
	for _, s := range old {
		s.Start()
	}
	e.WaitServing()
	if !sees(t, old[0], rootBefore) || sees(t, old[0], rootLost) {
		t.Error("the clients of the old copies see something else than these")
	}
	l := startLoad(t, e, "/other")
	l.waitProgress(30)
	for range 2 { // it is remembered
		third.Start()
		awaitHalt(t, third, "forked", append(onlyCopy, "the history of server 3 differs from that of servers [1 2]",
			"they are the same up to entry")...)
		if _, err := cluster.Dial(third.Addr(), cluster.ConnectOptions{}); err == nil {
			t.Error("a halted server lets clients in")
		}
		awaitAlarms(t, "server 3 is halted: forked", old...)
		third.Stop()
	}
	l.waitProgress(30)
	l.check()
	l.checkKept(third)
	if said, err := third.Run("recover", "--yes"); err == nil || !strings.Contains(said, "a majority is not lost") {
		t.Errorf("while the others run it says %q, %v", said, err)
	}
	recoverThird(t, e, old, third)
}

// TestHalt_MajorityIsBehind: the logs of two that were put back end before what the third one has applied, and they
// have no leader yet. It does not send them the missing entries, which an operator may have wanted to undo: it
// halts, and they continue without it.
func TestHalt_MajorityIsBehind(t *testing.T) {
	t.Parallel()
	e := startChecked(t, 3)
	old, third := e.Servers()[:2], e.Server(3)
	putBack(t, e, old...)
	for _, s := range old {
		s.Env = []string{"ZK_LITE_RAFT_ELECTION_TIMEOUT=60000"} // not now
		s.Start()
		wait.Succeeds(t, "an answer of an old copy", func() error {
			_, err := askReady(s)
			return err
		})
	}
	third.Start()
	awaitHalt(t, third, "forked", append(onlyCopy, "server 3 has applied entry",
		"the logs of servers [1 2] end before that; server 1 has applied entry")...)
	for _, s := range old {
		s.Stop()
		s.Env = nil
		s.Start()
	}
	awaitAlarms(t, "server 3 is halted: forked", old...)
	if sees(t, old[0], rootLost) {
		t.Error("the old copies have got what only the third one had")
	}
	third.Stop()
	recoverThird(t, e, old, third)
}

// recoverThird continues with the third one's history.
func recoverThird(t *testing.T, e *cluster.Ensemble, old []*cluster.Server, third *cluster.Server) {
	t.Helper()
	for _, s := range old {
		s.Stop()
		s.Wipe()
	}
	if said, err := third.Run("recover", "--yes"); err != nil {
		t.Fatalf("zk-lite recover: %v: %s", err, said)
	}
	third.Start()
	e.WaitServing()
	if !sees(t, third, rootLost) {
		t.Error("what only the third one had is lost")
	}
	for _, s := range old {
		join(t, e, third, s)
	}
	e.CheckReplicas()
}

// TestHalt_OnePutBack: the server whose directory was put back has forgotten its votes, and does not join. The others'
// clients notice nothing; with an empty disk it can join again.
func TestHalt_OnePutBack(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("of %d", n), func(t *testing.T) {
			t.Parallel()
			e := startChecked(t, n)
			old, others := e.Server(1), e.Servers()[1:]
			putBack(t, e, old)
			for _, s := range others {
				s.Start()
			}
			e.WaitServing()
			l := startLoad(t, e, "/after")
			l.waitProgress(10)
			old.Start()
			awaitHalt(t, old, "forked", "the data directory of server 1 is an old copy", "add it again")
			awaitAlarms(t, "server 1 is halted: forked", others...)
			l.waitProgress(10)
			replaceHalted(t, e, old)
			l.waitProgress(10)
			l.check()
			l.checkKept(old)
			e.CheckReplicas()
		})
	}
}

// TestHalt_FlippedBit: a bit of a follower's memory flips. That server halts and reports since when; the others'
// clients notice nothing; with an empty disk it recovers from a snapshot.
func TestHalt_FlippedBit(t *testing.T) {
	t.Parallel()
	const data = "what is kept in memory, and nowhere else"
	e := startChecked(t, 3)
	c, err := client.Connect(t.Context(), e.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Create(t.Context(), "/flipped", []byte(data), client.Persistent); err != nil {
		t.Fatal(err)
	}
	l := startLoad(t, e, "/flip")
	leader, followers := e.Roles()
	bad := followers[0]
	wait.Succeeds(t, "a compared state with the znode", func() error {
		if n := figure(t, bad, "check_last_index"); n == "0" || !sees(t, bad, "/flipped") {
			return fmt.Errorf("the last compared entry is %s", n)
		}
		return nil
	})
	bad.Flip(data)
	awaitHalt(t, bad, "diverged", fmt.Sprintf("the state of server %d differs from that of a majority", bad.ID),
		"it was the same after entry")
	awaitAlarms(t, fmt.Sprintf("server %d is halted: diverged", bad.ID), leader, followers[1])
	l.waitProgress(10)
	if got, _, err := c.Get(t.Context(), "/flipped"); err != nil || string(got) != data {
		t.Errorf("clients read %q, %v", got, err)
	}
	replaceHalted(t, e, bad)
	l.waitProgress(10)
	l.check()
	l.checkKept(bad)
	e.CheckReplicas()
}
