package failover_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// refusesToForm demands that a server refuses `zk-lite form`, with a reason.
func refusesToForm(t *testing.T, s *cluster.Server, without string, words ...string) {
	t.Helper()
	out, err := s.Run("form", "--yes", "--without", without)
	if err == nil {
		t.Errorf("server %d forms without %s: %s", s.ID, without, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("server %d without %s says no %q: %s", s.ID, without, w, out)
		}
	}
	if _, err := os.Stat(filepath.Join(s.DataDir, "form.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("server %d without %s: the word was written down", s.ID, without)
	}
}

// TestForm_WithoutOne: two of three servers have their disks, and an operator lets them form the ensemble. The third
// joins later with an empty one, and from then on two are enough, also with it. No other ensemble is formed.
func TestForm_WithoutOne(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	e := start(t, 3, cluster.Options{NotStarted: true, Config: map[string]string{"peer.joinSecretFile": secret}})
	first, second, third := e.Server(1), e.Server(2), e.Server(3)
	first.Start()
	second.Start()
	wait.Succeeds(t, "the two answer", func() error {
		_, err := askReady(second)
		return err
	})
	refusesToForm(t, first, "2,3", "no majority: start 1 more of them")
	refusesToForm(t, first, "9", "server 9 is no voter of the configuration: its voters are [1 2 3]")
	refusesToForm(t, first, "300", "300 is not a server id")
	refusesToForm(t, first, "2", "server 2 answers: nothing was done")
	refusesToForm(t, second, "3", "server 1, the voter with the lowest id that is left", "run this there")
	if out, err := first.Run("form", "--without", "3"); err == nil || !strings.Contains(out, "ALL OF THEM") ||
		!strings.Contains(out, "no terminal to ask at") {
		t.Errorf("without a terminal: %v, %s", err, out)
	}

	if out, err := first.Run("form", "--yes", "--without", "3"); err != nil {
		t.Fatalf("zk-lite form: %v: %s", err, out)
	}
	e.WaitServing()
	l := startLoad(t, e, "/formed")
	l.waitProgress(50)
	refusesToForm(t, first, "3", "belongs to an ensemble already", "has data of ensemble", "zk-lite recover")

	var made struct{ Token string }
	answer := cluster.ChangeMembers(t, e.Leader(), http.MethodPost, "/members/3/token", "", http.StatusOK)
	if err := errors.Join(json.Unmarshal(answer, &made), os.WriteFile(secret, []byte(made.Token), 0o600)); err != nil {
		t.Fatal(err)
	}
	third.Start()
	wait.Succeeds(t, "the third server votes", func() error {
		var now struct{ Voters int }
		err := json.Unmarshal(cluster.ChangeMembers(t, e.Leader(), http.MethodGet, "", "", http.StatusOK), &now)
		if err == nil && now.Voters != 3 {
			err = fmt.Errorf("%d voters", now.Voters)
		}
		return err
	})
	e.WaitServing()
	l.waitProgress(50)
	l.end()
	first.Kill()
	e.WaitServing()
	l = startLoad(t, e, "/with-the-third")
	l.waitProgress(50)
	l.check()
	e.CheckReplicas()

	first.Wipe() // and forget that there was an ensemble
	refusesToForm(t, first, "3", "the ensemble exists already", "nothing was done", "zk-lite member token")
}
