//go:build upgrade

package upgrade_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestUpgrade upgrades three servers one by one, goes back, upgrades again, and finalizes, under load. No operation may
// fail, no session expire, nothing be lost; with kills, writes whose server was killed may be unknown.
func TestUpgrade(t *testing.T) {
	next := filepath.Join(t.TempDir(), "zk-lite")
	if err := cluster.Build(next, "-tags", "nextrelease"); err != nil {
		t.Fatal(err)
	}
	for name, kills := range map[string]bool{"in good order": false, "a server killed at each step": true} {
		t.Run(name, func(t *testing.T) {
			u := &upgrade{t: t, e: cluster.Start(t, 3, cluster.Options{}), next: next, kills: kills}
			u.load = startLoad(t, u.e)
			u.load.progress()
			u.run()
			u.load.check(kills)
		})
	}
}

type upgrade struct {
	t     *testing.T
	e     *cluster.Ensemble
	load  *load
	next  string // the binary of the next release
	kills bool
}

func (u *upgrade) run() {
	const levelPath, nextPath = "/v1/cluster/level", "/v1/cluster/next"
	first := u.e.Server(1)
	u.to(u.next, u.e.Server(1), u.e.Server(2))
	u.ask(first, http.MethodPut, levelPath, `{"level": 2}`, http.StatusConflict, "upgrade it first")
	u.ask(first, http.MethodPost, nextPath, "", http.StatusConflict, "the ensemble is at level 1")
	u.to(u.next, u.e.Server(3))
	u.to("", u.e.Servers()...)
	u.to(u.next, u.e.Servers()...)
	u.ask(first, http.MethodPost, nextPath, "", http.StatusConflict, "the ensemble is at level 1")
	u.ask(first, http.MethodPut, levelPath, `{"level": 2}`, http.StatusOK, `"level":2`)
	u.ask(first, http.MethodPut, levelPath, `{"level": 1}`, http.StatusConflict, "never goes back")
	for _, s := range u.e.Servers() {
		// Another server than the one that raised it may hear of it a moment later.
		cluster.Eventually(u.t, fmt.Sprintf("the new operation works at server %d", s.ID), cluster.Patience, func() error {
			status, text, err := u.request(s, http.MethodPost, nextPath, "")
			if status != http.StatusOK {
				return fmt.Errorf("%d: %s, %w", status, text, errors.Join(err))
			}
			return nil
		})
	}
	u.refused(u.e.Server(3))
	u.load.progress()
}

// to has servers run another release, one by one.
func (u *upgrade) to(binary string, servers ...*cluster.Server) {
	u.t.Helper()
	for _, s := range servers {
		s.Stop()
		s.Binary = binary
		s.Start()
		u.e.WaitServing()
		u.load.progress()
		if u.kills {
			victim := u.e.Leader()
			victim.Restart()
			u.e.WaitServing()
			u.load.progress()
		}
	}
}

// refused starts a server with the release before, which must end and name both levels.
func (u *upgrade) refused(s *cluster.Server) {
	u.t.Helper()
	s.Stop()
	before := len(s.Log())
	s.Binary = ""
	s.Start()
	if err := s.WaitEnd(); err == nil {
		u.t.Error("the old release has ended without an error")
	}
	const want = "the ensemble is at feature level 2, but this build of zk-lite speaks levels 1 to 1"
	if said := s.Log()[before:]; !strings.Contains(said, want) {
		u.t.Errorf("the old release says %q, want %q", said, want)
	}
	s.Binary = u.next
	s.Start()
	u.e.WaitServing()
}

func (u *upgrade) ask(s *cluster.Server, method, path, body string, status int, want string) {
	u.t.Helper()
	got, text, err := u.request(s, method, path, body)
	if err != nil || got != status || !strings.Contains(text, want) {
		u.t.Errorf("%s %s at server %d: %d %s, %v; want %d and %q", method, path, s.ID, got, text, err, status, want)
	}
}

func (u *upgrade) request(s *cluster.Server, method, path, body string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(u.t.Context(), method, "http://"+s.HTTPAddr()+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	user, password, _ := strings.Cut(cluster.SuperCredentials, ":")
	r.SetBasicAuth(user, password)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(b), err
}
