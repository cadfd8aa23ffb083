package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// Why a session expired, as the server knows it that leads and is number 1.
func TestServer_ExpiredSessions_SayWhy(t *testing.T) {
	const timeout = 4 * time.Second
	of2 := &state.Command{Op: state.OpCreateSession, Session: 5, Timeout: timeout}
	for name, c := range map[string]struct {
		run    func(k *kit)
		cause  string
		by     state.ServerID
		reason string
	}{
		"client never heard": {func(k *kit) { k.connect().open(timeout) }, CauseSilent, state.NoServer, ""},
		"client silent": {func(k *kit) {
			c := k.connect()
			c.open(timeout)
			k.until(time.Second, c)
		}, CauseSilent, 1, ""},
		"connection ended": {func(k *kit) {
			c := k.connect()
			c.open(timeout)
			c.Close("reset by peer")
		}, CauseDisconnected, state.NoServer, "reset by peer"},
		"client silent at another server": {func(k *kit) {
			k.log.from(2, of2)
			k.srv.handler.Touched(2, []znode.SessionID{5})
			for range 8 {
				k.until(time.Second)
				k.srv.handler.Touched(2, nil)
			}
		}, CauseElsewhere, 2, ""},
		"another server silent": {func(k *kit) {
			k.log.from(2, of2)
			k.srv.handler.Touched(2, []znode.SessionID{5})
		}, CauseServer, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := started(t, nil)
				c.run(k)
				k.until(10 * time.Second)
				all := k.srv.ExpiredSessions(0, 9)
				if len(all) != 1 {
					t.Fatalf("%+v", all)
				}
				x := all[0]
				if x.Cause != c.cause || x.HeardBy != c.by || x.EndReason != c.reason || !x.Led || x.Timeout != timeout {
					t.Errorf("%+v", x)
				}
			})
		})
	}
}

// The paths of the first ephemerals that went with it are kept, as far as there is room.
func TestServer_ExpiredSessions_NameEphemerals(t *testing.T) {
	long := "/" + strings.Repeat("x", maxExpiredPathBytes)
	var many []string
	for i := range maxExpiredPaths + 2 {
		many = append(many, fmt.Sprintf("/e%02d", i))
	}
	for name, c := range map[string]struct{ made, kept []string }{
		"none":        {nil, nil},
		"two":         {[]string{"/b", "/a"}, []string{"/a", "/b"}},
		"many":        {many, many[:maxExpiredPaths]},
		"a long path": {[]string{"/a", long}, []string{"/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := started(t, nil)
				client := k.connect()
				client.open(4 * time.Second)
				for _, path := range c.made {
					client.ephemeral(path)
				}
				k.until(10 * time.Second)
				all := k.srv.ExpiredSessions(0, 9)
				if len(all) != 1 || all[0].Ephemerals != len(c.made) || !slices.Equal(all[0].Paths, c.kept) {
					t.Errorf("%+v", all)
				}
			})
		})
	}
}

// A session that came back, and one that was closed, leave nothing behind.
func TestServer_Parted_IsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		old, next := k.connect(), k.connect()
		s := old.open(40 * time.Second)
		old.Close("")
		if n := len(k.srv.expiries.parted); n != 1 {
			t.Errorf("%d are remembered", n)
		}
		next.attach(&s, s.Password)
		k.log.drain()
		if n := len(k.srv.expiries.parted); n != 0 {
			t.Errorf("%d are remembered", n)
		}
	})
}

// It remembers so many, and the newest.
func TestServer_ExpiredSessions_AreBounded(t *testing.T) {
	var e expiries
	for i := range 2500 {
		e.add(ExpiredSession{Session: znode.SessionID(i)}, 1)
	}
	all := e.page(0, 9999)
	if len(all) != maxExpired || all[0].Session != 2499 || all[maxExpired-1].Session != 1500 {
		t.Errorf("%d, from %v", len(all), all[0])
	}
	if next := e.page(all[9].ID, 1); next[0].Session != all[10].Session {
		t.Errorf("the next page begins with %v, want %v", next[0].Session, all[10].Session)
	}
}
