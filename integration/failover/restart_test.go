//go:build privileged

package failover_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// trailing is how many entries servers keep after a snapshot (consensus.Config), and some more:
// a server that has missed this many catches up by a snapshot.
const trailing = 4096 + 500

// TestRestart_Rolling restarts one server after the other in good order, as an upgrade
// does, under load, the leader included.
func TestRestart_Rolling(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	l := startPacedLoad(t, e, "/rolling", networkPace)
	l.waitProgress(20)
	at := time.Now()
	for range rounds(t, 3) {
		for _, s := range e.Servers() {
			s.Stop()
			s.Start()
			e.WaitServing()
			l.waitProgress(5)
		}
	}
	gap, _ := l.gap(at)
	t.Logf("nobody got an answer for %v", gap)
	if gap > generousGap {
		t.Errorf("nobody got an answer for %v", gap)
	}
	l.check()
	e.CheckReplicas()
}

// TestRestart_MissedTooMuch_SnapshotOnly kills a follower until the others no longer have its
// next entry, then gives a second one a new disk and a new place in the ensemble: both must
// catch up by a snapshot, under load, with nothing lost.
func TestRestart_MissedTooMuch_SnapshotOnly(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	e := start(t, 3, cluster.Options{Config: map[string]string{"snapCount": "200", "peer.joinSecretFile": secret}})
	l := startPacedLoad(t, e, "/behind", time.Millisecond)
	l.waitProgress(50)
	_, followers := e.Roles()
	behind, replaced := followers[0], followers[1]
	behind.Kill()
	leader := e.Leader()
	for end := lastIndex(t, leader) + trailing; lastIndex(t, leader) < end; {
		l.waitProgress(20)
	}
	catchesUp(t, e, behind)
	replaced.Kill()
	cluster.ChangeMembers(t, e.Leader(), http.MethodDelete, fmt.Sprintf("/members/%d?force=true", replaced.ID), "",
		http.StatusNotFound)
	l.waitProgress(20)
	replaced.Wipe()
	var added struct{ Token string }
	answer := cluster.ChangeMembers(t, e.Leader(), http.MethodPost, "/members",
		fmt.Sprintf(`{"id": %d, "address": %q}`, replaced.ID, replaced.PeerAddr()), http.StatusOK)
	if err := errors.Join(json.Unmarshal(answer, &added), os.WriteFile(secret, []byte(added.Token), 0o600)); err != nil {
		t.Fatal(err)
	}
	catchesUp(t, e, replaced)
	l.waitProgress(50)
	l.check()
	e.CheckReplicas()
}

func catchesUp(t *testing.T, e *cluster.Ensemble, s *cluster.Server) {
	t.Helper()
	before := len(s.Log())
	at := time.Now()
	s.Start()
	e.WaitServing()
	t.Logf("server %d serves after %v", s.ID, time.Since(at))
	// A server reports that it serves as soon as it has contact with the leader, and applies the entries that it missed
	// meanwhile.
	wait.Succeeds(t, "the server has got a snapshot", func() error {
		said := s.Log()[before:]
		if !strings.Contains(said, "Installed remote snapshot") {
			return fmt.Errorf("it says: %s", said)
		}
		return nil
	})
}

// lastIndex is the number of the last entry in a server's log.
func lastIndex(t *testing.T, s *cluster.Server) int {
	t.Helper()
	return metric(t, s, "raft_last_index")
}

// metric returns one of a server's metrics.
func metric(t *testing.T, s *cluster.Server, name string) (value int) {
	t.Helper()
	wait.Succeeds(t, fmt.Sprintf("server %d tells its %s", s.ID, name), func() error {
		r, err := http.Get("http://" + s.HTTPAddr() + "/metrics")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		for line := range strings.Lines(string(text)) {
			if n, err := fmt.Sscanf(line, name+" %d", &value); n == 1 && err == nil {
				return nil
			}
		}
		return fmt.Errorf("no %s in %d bytes, %w", name, len(text), errors.Join(err, io.EOF))
	})
	return value
}
