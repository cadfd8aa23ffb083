package server

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// Why a session expired, as server 1, the leader, knows it.
func TestServer_ExpiredSessions_SayWhy(t *testing.T) {
	const timeout = 4 * time.Second
	of2 := &state.Command{Op: state.OpCreateSession, Session: 5, Timeout: timeout}
	for name, c := range map[string]struct {
		run    func(k *kit)
		cause  string
		by     state.ServerID
		reason string
	}{
		"client never heard": {func(k *kit) { k.connect().open(timeout) }, insight.CauseSilent, state.NoServer, ""},
		"client silent": {func(k *kit) {
			c := k.connect()
			c.open(timeout)
			k.until(time.Second, c)
		}, insight.CauseSilent, 1, ""},
		"connection ended": {func(k *kit) {
			c := k.connect()
			c.open(timeout)
			c.Close("reset by peer")
		}, insight.CauseDisconnected, state.NoServer, "reset by peer"},
		"client silent at another server": {func(k *kit) {
			k.log.from(2, of2)
			k.srv.Handler().Touched(2, []znode.SessionID{5})
			for range 8 {
				k.until(time.Second)
				k.srv.Handler().Touched(2, nil)
			}
		}, insight.CauseElsewhere, 2, ""},
		"another server silent": {func(k *kit) {
			k.log.from(2, of2)
			k.srv.Handler().Touched(2, []znode.SessionID{5})
		}, insight.CauseServer, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := started(t, nil)
				c.run(k)
				k.until(10 * time.Second)
				all := k.srv.Expired().Sessions(0, 9)
				if len(all) != 1 {
					t.Fatalf("expired sessions %+v, want one", all)
				}
				x := all[0]
				if x.Cause != c.cause || x.HeardBy != c.by || x.EndReason != c.reason || !x.Led || x.Timeout != timeout {
					t.Errorf("session %+v; want cause %v, heard by %v, end reason %v, led, timeout %v",
						x, c.cause, c.by, c.reason, timeout)
				}
			})
		})
	}
}

// The paths of the first ephemerals that went with it are kept, as far as there is room.
func TestServer_ExpiredSessions_NameEphemerals(t *testing.T) {
	const paths, bytes = 10, 1 << 10 // that package insight remembers
	long := "/" + strings.Repeat("x", bytes)
	var many []string
	for i := range paths + 2 {
		many = append(many, fmt.Sprintf("/e%02d", i))
	}
	for name, c := range map[string]struct{ made, kept []string }{
		"none":        {nil, nil},
		"two":         {[]string{"/b", "/a"}, []string{"/a", "/b"}},
		"many":        {many, many[:paths]},
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
				all := k.srv.Expired().Sessions(0, 9)
				if len(all) != 1 || all[0].Ephemerals != len(c.made) || !slices.Equal(all[0].Paths, c.kept) {
					t.Errorf("expired sessions %+v, want one with %d ephemeral nodes, %q of them kept", all, len(c.made), c.kept)
				}
			})
		})
	}
}

// Who its client was is kept, from the open connection or the last one, without hashes and within bounds.
func TestServer_ExpiredSessions_NameTheClient(t *testing.T) {
	alice := znode.ID{Scheme: "digest", ID: "alice:c2VjcmV0"}
	long := znode.ID{Scheme: "x509", ID: strings.Repeat("x", 256)}
	for name, end := range map[string]func(*client){"silent": func(*client) {}, "ended": func(c *client) { c.Close("reset") }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := started(t, nil)
				c := k.connect(alice, long)
				c.open(4 * time.Second)
				end(c)
				k.until(10 * time.Second)
				all := k.srv.Expired().Sessions(0, 9)
				want := insight.Client{Address: c.Address(), Identities: []znode.ID{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "digest", ID: "alice:x"}}}
				if len(all) != 1 || !reflect.DeepEqual(all[0].Client, want) {
					t.Errorf("expired sessions %+v, want one of %+v", all, want)
				}
			})
		})
	}
}

// A session that came back expires for what its new connection did.
func TestServer_ExpiredSessions_AfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := started(t, nil)
		old, next := k.connect(), k.connect()
		s := old.open(4 * time.Second)
		old.Close("reset by peer")
		next.attach(&s, s.Password)
		k.until(10 * time.Second)
		all := k.srv.Expired().Sessions(0, 9)
		if len(all) != 1 || all[0].Cause != insight.CauseSilent || !all[0].Ended.IsZero() || !all[0].Connected {
			t.Errorf("expired: %+v; want one session, %s, on its open connection", all, insight.CauseSilent)
		}
	})
}
