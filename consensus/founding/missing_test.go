package founding

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/testkit/golden"
)

var three = []membership.Server{{ID: 1, Voter: true}, {ID: 2, Voter: true}, {ID: 3, Voter: true}}

// The replies of the others decide whether there is an ensemble to form.
func TestPlan_Check(t *testing.T) {
	c := storage.Config{Dir: t.TempDir()}
	f, err := NewPlan(c, 1, three, []state.ServerID{3})
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("connection refused")
	for name, x := range map[string]struct {
		second, third membership.Peer
		want          error
	}{
		"the third is away":           {membership.Peer{ID: 2}, membership.Peer{ID: 3, Err: away}, nil},
		"the second is not up yet":    {membership.Peer{ID: 2, Err: away}, membership.Peer{ID: 3, Err: away}, nil},
		"the third answers":           {membership.Peer{ID: 2}, membership.Peer{ID: 3}, ErrAnswers},
		"the second is a member":      {membership.Peer{ID: 2, Member: true}, membership.Peer{ID: 3, Err: away}, ErrExists},
		"the third is a member":       {membership.Peer{ID: 2}, membership.Peer{ID: 3, Member: true}, ErrExists},
		"both are, and have a leader": {membership.Peer{ID: 2, Member: true, Led: true}, membership.Peer{ID: 3, Member: true}, ErrExists},
	} {
		if err := f.Check([]membership.Peer{x.third, x.second}); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	if err := f.Write(); err != nil {
		t.Fatal(err)
	}
	if without, err := FileIn(c.Dir).Load(); err != nil || len(without) != 1 || without[0] != 3 {
		t.Errorf("%v, %v", without, err)
	}
}

// A server that has data forms nothing, whatever is asked for.
func TestNewPlan_HasData_IsRefused(t *testing.T) {
	c := storage.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	s, err := storage.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := NewPlan(c, 1, three, []state.ServerID{2, 3}); err == nil || !strings.Contains(err.Error(), "no majority") {
		t.Errorf("too many: %v", err)
	}
	if err := s.Identity.Save(storage.Identity{Ensemble: [16]byte{1}, Server: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := NewPlan(c, 1, three, []state.ServerID{3}); !errors.Is(err, ErrHasData) || !strings.Contains(err.Error(), c.Dir) {
		t.Errorf("%v, want ErrHasData", err)
	}
}

func TestGolden_Form(t *testing.T) {
	f := FileIn(filepath.Join(t.TempDir(), "new"))
	if err := f.Save([]state.ServerID{3, 0}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(string(f))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "form.json", b)
	if without, err := f.Load(); err != nil || !slices.Equal(without, []state.ServerID{3, 0}) {
		t.Errorf("%v, %v", without, err)
	}
	for content, want := range map[string]string{
		`{"version":2,"without":[3]}`:   "it has version 2, and this release reads version 1",
		`{"version":1,"without":[300]}`: "300 is not a server id",
		`{`:                             "unexpected end",
	} {
		if err := os.WriteFile(string(f), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if without, err := f.Load(); err != nil || len(without) > 0 {
		t.Errorf("removed: %v, %v", without, err)
	}
	if without, err := File("").Load(); err != nil || len(without) > 0 || File("").Remove() != nil {
		t.Errorf("none: %v, %v", without, err)
	}
}

func TestCheckMissing(t *testing.T) {
	five := []membership.Server{{ID: 5, Voter: true}, {ID: 4, Voter: true}, {ID: 3, Voter: true}, {ID: 2, Voter: true}, {ID: 1, Voter: true}, {ID: 6}}
	for _, x := range []struct {
		servers []membership.Server
		self    state.ServerID
		without []state.ServerID
		want    string // empty: nothing is wrong
	}{
		{five, 1, []state.ServerID{3, 5}, ""},
		{five, 3, []state.ServerID{1, 2}, ""},
		{five, 2, []state.ServerID{5}, "server 1, the voter with the lowest id that is left, forms the ensemble: run this there, not on server 2"},
		{five, 1, []state.ServerID{1}, "server 2, the voter"},
		{five, 1, []state.ServerID{2, 3, 4}, "2 of 5 voters are left, and that is no majority: start 1 more of them"},
		{five, 1, []state.ServerID{2, 2, 3}, ""},
		{five, 1, []state.ServerID{6}, "server 6 is no voter of the configuration: its voters are [1 2 3 4 5]"},
		{five, 1, []state.ServerID{state.NoServer}, "server -1 is no voter"},
		{five, 1, nil, "name at least one"},
		{five[:1], 5, nil, "standalone"},
	} {
		err := CheckMissing(x.servers, x.self, x.without)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("server %d without %v: %v, want %q", x.self, x.without, err, x.want)
		}
	}
}
