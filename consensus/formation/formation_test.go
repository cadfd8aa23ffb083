package formation

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
)

var three = []membership.Server{{ID: 1, Voter: true}, {ID: 2, Voter: true}, {ID: 3, Voter: true}}

// What the others say decides whether there is something to form.
func TestFormation_Check(t *testing.T) {
	c := storage.Config{Dir: t.TempDir()}
	f, err := New(c, 1, three, []state.ServerID{3})
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
	if without, err := c.Form().Load(); err != nil || len(without) != 1 || without[0] != 3 {
		t.Errorf("%v, %v", without, err)
	}
}

// A server that has data forms nothing, whatever is asked for.
func TestNew_HasData_IsRefused(t *testing.T) {
	c := storage.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	s, err := storage.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := New(c, 1, three, []state.ServerID{2, 3}); err == nil || !strings.Contains(err.Error(), "no majority") {
		t.Errorf("too many: %v", err)
	}
	if err := s.Identity.Save(storage.Identity{Ensemble: [16]byte{1}, Server: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(c, 1, three, []state.ServerID{3}); !errors.Is(err, ErrHasData) || !strings.Contains(err.Error(), c.Dir) {
		t.Errorf("%v, want ErrHasData", err)
	}
}
