//go:build upgrade

package upgrade_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/integration/workload"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestUpgrade upgrades three servers one by one, goes back, upgrades again, and finalizes, under load: from the release
// before to this build, and from this build to one that acts as the next. No operation may fail, no session expire,
// nothing be lost, and no history break a guarantee; with kills, writes whose server was killed may be unknown.
func TestUpgrade(t *testing.T) {
	others := foreigners(t)
	for name, pair := range map[string]func(*testing.T) (from, to release){
		"from the release before": func(t *testing.T) (from, to release) { return previous(t), current },
		"to the next release":     func(t *testing.T) (from, to release) { return current, next(t) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := pair(t)
			for name, kills := range map[string]bool{"in good order": false, "a server killed at each step": true} {
				t.Run(name, func(t *testing.T) { upgradeAndBack(t, from, to, kills, others) })
			}
		})
	}
}

func upgradeAndBack(t *testing.T, from, to release, kills bool, others []foreign) {
	e := cluster.Start(t, 3, cluster.Options{NotStarted: true})
	for _, s := range e.Servers() {
		s.Binary = from.binary
	}
	e.StartAll()
	e.WaitServing()
	u := &upgrade{t: t, e: e, from: from, to: to, kills: kills, load: startLoad(t, e, others)}
	w := workload.Open(t, e, 0, seed.Of(t))
	u.load.progress()
	u.run()
	u.load.end()
	f := w.Close()
	t.Logf("%v; of %d restarted servers %d were killed before they served", f, u.restarts, u.early)
	for _, v := range f.Violations {
		t.Errorf("the guarantee %q is broken: %s", v.Guarantee, v.What)
	}
	u.load.check(kills)
}

type upgrade struct {
	t               *testing.T
	e               *cluster.Ensemble
	load            *load
	from, to        release
	kills           bool
	restarts, early int // with kills: servers that were killed once more after a restart, before they served
}

const levelPath, nextPath = "/v1/cluster/level", "/v1/cluster/next"

func (u *upgrade) run() {
	first, all := u.e.Server(1), u.e.Servers()
	u.install(u.to, all[:2]...)
	if u.to.level > u.from.level {
		u.ask(first, http.MethodPut, levelPath, fmt.Sprintf(`{"level": %d}`, u.to.level), http.StatusConflict,
			"upgrade it first")
	}
	u.install(u.to, all[2])
	u.install(u.from, all...)
	u.install(u.to, all...)
	if u.to.level > current.level {
		u.ask(first, http.MethodPost, nextPath, "", http.StatusConflict,
			fmt.Sprintf("the ensemble is at level %d", u.from.level))
	}
	u.raise(first)
	if u.to.level > current.level {
		u.useNext()
	}
	if u.to.level > u.from.level {
		u.ask(first, http.MethodPut, levelPath, fmt.Sprintf(`{"level": %d}`, u.from.level), http.StatusConflict,
			"never goes back")
		u.refused(all[2])
	}
	u.load.progress()
}

// raise raises the level, as soon as all servers have said that they speak it and one of them leads.
func (u *upgrade) raise(through *cluster.Server) {
	u.t.Helper()
	var answer string
	wait.Succeeds(u.t, "the new level", func() error {
		status, text, err := u.request(through, http.MethodPut, levelPath, fmt.Sprintf(`{"level": %d}`, u.to.level))
		if status != http.StatusOK {
			return fmt.Errorf("%d: %s, %w", status, text, errors.Join(err))
		}
		answer = text
		return nil
	})
	if want := fmt.Sprintf(`"level":%d`, u.to.level); !strings.Contains(answer, want) {
		u.t.Errorf("the level is raised, and server %d answers %s, want %s", through.ID, answer, want)
	}
}

// useNext does what only the next release can.
func (u *upgrade) useNext() {
	for _, s := range u.e.Servers() {
		// Another server than the one that raised the level may learn of it a moment later.
		wait.Succeeds(u.t, fmt.Sprintf("the new operation works at server %d", s.ID), func() error {
			status, text, err := u.request(s, http.MethodPost, nextPath, "")
			if status != http.StatusOK {
				return fmt.Errorf("%d: %s, %w", status, text, errors.Join(err))
			}
			return nil
		})
	}
}

// install has servers run another release, one by one. With kills each is killed once more while it catches up, and the
// leader when all is well again.
func (u *upgrade) install(r release, servers ...*cluster.Server) {
	u.t.Helper()
	for _, s := range servers {
		s.Stop()
		s.Binary = r.binary
		if u.kills {
			u.load.progress()
			s.Start()
			u.killEarly(s)
		}
		s.Start()
		u.e.WaitServing()
		u.load.progress()
		if u.kills {
			u.e.Leader().Restart()
			u.e.WaitServing()
			u.load.progress()
		}
	}
}

// killEarly kills a server as soon as its HTTP port answers.
func (u *upgrade) killEarly(s *cluster.Server) {
	u.t.Helper()
	var status int
	wait.Succeeds(u.t, "a port of a server that was started", func() (err error) {
		status, _, err = u.request(s, http.MethodGet, "/readyz", "")
		return err
	})
	s.Kill()
	if u.restarts++; status != http.StatusOK {
		u.early++
	}
}

// refused starts a server with the release before, which must end and name both levels.
func (u *upgrade) refused(s *cluster.Server) {
	u.t.Helper()
	s.Stop()
	before := len(s.Log())
	s.Binary = u.from.binary
	s.Start()
	if err := s.WaitEnd(); err == nil {
		u.t.Error("the old release has ended without an error")
	}
	want := fmt.Sprintf("the ensemble is at feature level %d, but this build of zk-lite speaks levels", u.to.level)
	if said := s.Log()[before:]; !strings.Contains(said, want) {
		u.t.Errorf("the old release says %q, want %q", said, want)
	}
	s.Binary = u.to.binary
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
