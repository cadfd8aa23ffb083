package insight

import (
	"log/slog"
	"testing"

	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// It keeps a limited number, the newest.
func TestExpirations_AreBounded(t *testing.T) {
	e := NewExpirations(1, slog.New(slog.DiscardHandler))
	for i := range 2500 {
		e.Add(&session.Session{ID: znode.SessionID(i)}, nil, nil)
	}
	all := e.Sessions(0, 9999)
	if len(all) != keepExpired || all[0].Session != 2499 || all[keepExpired-1].Session != 1500 || e.Count() != 2500 {
		t.Errorf("%d of %d are kept, the newest is %+v", len(all), e.Count(), all[0])
	}
	if next := e.Sessions(all[9].ID, 1); next[0].Session != all[10].Session {
		t.Errorf("the next page begins with %v, want %v", next[0].Session, all[10].Session)
	}
}

// Sessions that reconnected, expired, or were closed leave nothing.
func TestExpirations_Disconnected_IsForgotten(t *testing.T) {
	e := NewExpirations(1, slog.New(slog.DiscardHandler))
	expect := func(want int, when string) {
		t.Helper()
		if got := len(e.disconnected); got != want {
			t.Errorf("%s: %d sessions are remembered, want %d", when, got, want)
		}
	}
	e.Disconnected(1, Client{}, "", 0)
	e.Disconnected(2, Client{}, "", 0)
	expect(2, "two disconnected")
	e.Reconnected(1)
	expect(1, "one reconnected")
	e.Add(&session.Session{ID: 2, Owner: 1}, nil, nil)
	expect(0, "the other expired")
	for i := range maxDisconnected + 1 {
		e.Disconnected(znode.SessionID(i), Client{}, "", 0)
	}
	expect(1, "as many as are remembered and one more disconnected")
}
