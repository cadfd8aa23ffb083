package founding

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/migration/seed"
)

// The voters that are fresh say which data they have, and whether their release knows any.
func TestRound_JudgeSeeds(t *testing.T) {
	for _, x := range []struct {
		seeds map[string][]state.ServerID
		want  string
		waits string // contained; empty: nothing to wait for
	}{
		{seeds: map[string][]state.ServerID{membership.NoSeed: {1, 2, 3}}},
		{seeds: map[string][]state.ServerID{membership.NoSeed: {1}, "": {2, 3}}},
		{seeds: map[string][]state.ServerID{membership.NoSeed: {1, 2}, "a": {3}}, want: "a"},
		{seeds: map[string][]state.ServerID{"a": {1, 2, 3}}, want: "a"},
		{
			seeds: map[string][]state.ServerID{"b": {1, 3}, "a": {2}}, want: "a",
			waits: "server 2 has a, and server 1 has b",
		},
		{
			seeds: map[string][]state.ServerID{"": {2}, membership.NoSeed: {1}, "a": {3}}, want: "a",
			waits: "for servers [2] to run a release that can begin with imported data, those of server 3",
		},
	} {
		r := &round{Founder: &Founder{cfg: Config{Self: 1, Servers: three}}, seeds: x.seeds}
		got := r.judgeSeeds()
		if waits := strings.Join(r.waits, "; "); got != x.want || !strings.Contains(waits, x.waits) || (x.waits == "") != (waits == "") {
			t.Errorf("%v: %q, waiting %q; want %q, waiting %q", x.seeds, got, waits, x.want, x.waits)
		}
	}
}

// Data are imported into an empty server with a vote, which does not run, and nowhere else.
func TestCheckImport(t *testing.T) {
	c := storage.Config{Dir: filepath.Join(t.TempDir(), "new"), Logger: slog.New(slog.DiscardHandler)}
	check := func(self state.ServerID, servers []membership.Server, want string) {
		t.Helper()
		switch err := CheckImport(c, self, servers); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("server %d: %v, want %q", self, err, want)
		}
	}
	check(1, three, "")
	check(3, three, "")
	check(4, append(three[:3:3], membership.Server{ID: 4}), "no vote")
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("the check has made the directory: %v", err)
	}
	s, err := storage.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	check(1, three, "stop it")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(1, three, "") // it has waited for the others, and founded nothing
	m, err := state.NewFrom(state.New().Tree(), state.New().Sessions(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.Dir, seed.Name)
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(m.Snapshot().Write(f), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckImport(c, 1, three); !errors.Is(err, seed.ErrExists) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second import: %v, want ErrExists with the file", err)
	}
	if err := errors.Join(os.Remove(path), s.Identity.Save(storage.Identity{Ensemble: [16]byte{1}, Server: 1})); err != nil {
		t.Fatal(err)
	}
	if err := CheckImport(c, 1, three); !errors.Is(err, ErrHasData) {
		t.Errorf("a server with data: %v, want ErrHasData", err)
	}
	c.Dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(c.Dir, "version-2"), 0o700); err != nil {
		t.Fatal(err)
	}
	check(1, three, "data of an Apache ZooKeeper")
}
