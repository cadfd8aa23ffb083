package client

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func TestClient_Multi_TypedResults(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		m := c.Multi()
		made := m.Create("/a", []byte("1"), PersistentSequential)
		set := m.Set("/", []byte("22"), AnyVersion)
		must(t, m.Commit(t.Context()))
		if made.Path != "/a0000000000" || made.Stat.DataLength != 1 || set.Stat.DataLength != 2 {
			t.Errorf("results %+v and %+v, want /a0000000000 with 1 byte, and 2 bytes", made, set)
		}
		m = c.Multi()
		m.Create("/a0000000000", nil, Persistent)
		m.Delete("/nothing", AnyVersion)
		err := m.Commit(t.Context())
		wantErr(t, err, ErrNodeExists)
		var me *MultiError
		if !errors.As(err, &me) || me.Index != 0 || me.Path != "/a0000000000" {
			t.Errorf("error %#v, want a *MultiError of operation 0, /a0000000000", err)
		}
		m = c.Multi()
		m.Delete("relative", AnyVersion)
		wantErr(t, m.Commit(t.Context()), ErrBadArguments)
	})
}

func TestClient_Chroot_RequestsResultsAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(t)
		defer s.stop()
		s.create("/app", "")
		c, err := Connect(t.Context(), "10.0.0.1:2181/app", WithDialer(s.dial))
		must(t, err)
		defer c.Close()
		ctx := t.Context()
		rec, err := c.AddWatch(ctx, "/", ModeRecursive)
		must(t, err)
		path, _, err := c.Create(ctx, "/x-", nil, EphemeralSequential)
		must(t, err)
		if path != "/x-0000000000" || get(s, &s.nodes)["/app/x-0000000000"] == nil {
			t.Errorf("created %s, want /x-0000000000, which is /app/x-0000000000 at the server", path)
		}
		if ev := <-rec.C(); ev.Path != path || ev.Type != EventCreated || rec.Path() != "/" {
			t.Errorf("event %+v of the watch on %s, want Created of %s, of the watch on /", ev, rec.Path(), path)
		}
		own, err := c.GetEphemerals(ctx, "")
		must(t, err)
		if len(own) != 1 || own[0] != path {
			t.Errorf("ephemerals %v, want %s alone", own, path)
		}
		_, _, err = c.Get(ctx, "/none")
		var op *OpError
		if !errors.As(err, &op) || op.Path != "/none" {
			t.Errorf("error %#v, want an *OpError of /none", err)
		}
		s.create("/application", "") // not below the chroot, though it looks so
		m := c.Multi()
		made := m.Create("/m", nil, Persistent)
		must(t, m.Commit(ctx))
		if made.Path != "/m" {
			t.Errorf("created %s, want /m", made.Path)
		}
		if ev := <-rec.C(); ev.Path != "/m" {
			t.Errorf("event %+v, want one of /m", ev)
		}
	})
}

func TestClient_AddAuth_RestoredBeforeAnythingElse(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.credentials = map[string]bool{"u:p": true} })
		must(t, c.AddAuth(t.Context(), "digest", []byte("u:p")))
		must(t, c.AddAuth(t.Context(), "digest", []byte("u:p")))
		wantErr(t, c.AddAuth(t.Context(), "digest", []byte("u:wrong")), ErrAuthFailed)
		s.do(func() { s.requests = nil })
		s.cutAll()
		_, _, err := c.Get(t.Context(), "/")
		must(t, err)
		s.do(func() {
			if len(s.requests) != 2 || s.requests[0] != wire.OpAuth {
				t.Errorf("requests on the new connection: %v", s.requests)
			}
		})
	})
}

func TestClient_AddAuth_ReplyOvertakes(t *testing.T) {
	// ZooKeeper answers auth on the thread that reads, before older requests.
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		var conn *fakeConn
		var xid wire.Xid
		s.do(func() {
			s.hook = func(c *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if h.Type == wire.OpExists {
					conn, xid = c, h.Xid
					return noAnswer
				}
				return serve
			}
		})
		exists := c.Async().Exists(t.Context(), "/")
		must(t, c.AddAuth(t.Context(), "digest", []byte("u:p")))
		s.do(func() { conn.answerLocked(xid, nil, znode.ErrNoNode) })
		reply, err := exists.Wait(t.Context())
		must(t, err)
		if reply.Exists {
			t.Error("the znode exists, want the answer that came after the one to auth")
		}
	})
}

func TestClient_Set_TooLarge(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		_, err := c.Set(t.Context(), "/", make([]byte, 1<<20), AnyVersion)
		wantErr(t, err, ErrTooLarge)
		// Just too large together with what is around the data.
		_, err = c.Set(t.Context(), "/", make([]byte, wire.DefaultMaxFrame-10), AnyVersion)
		wantErr(t, err, ErrTooLarge)
		_, err = c.Set(t.Context(), "/", make([]byte, wire.DefaultMaxFrame-64), AnyVersion)
		must(t, err)
		if n := len(get(s, &s.connects)); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

func TestWithMaxRequest_BoundsRequests(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		set := func(size int) error { _, err := c.Set(t.Context(), "/", make([]byte, size), AnyVersion); return err }
		must(t, set(900))
		wantErr(t, set(1001), ErrTooLarge)
		wantErr(t, set(990), ErrTooLarge) // together with the other fields
		m := c.Multi()
		m.Set("/", make([]byte, 600), AnyVersion)
		m.Set("/", make([]byte, 600), AnyVersion)
		wantErr(t, m.Commit(t.Context()), ErrTooLarge)
		if n := get(s, &s.nodes)["/"].stat.DataLength; n != 900 {
			t.Errorf("the znode has %d bytes, want the 900 of the only request within the bound", n)
		}
	}, WithMaxRequest(1000))
	// A request that the client accepts can still be too long for the server, which then ends the
	// connection.
	withFake(t, func(t *testing.T, _ *fakeServer, c *Client) {
		_, err := c.Set(t.Context(), "/", make([]byte, wire.DefaultMaxFrame+1), AnyVersion)
		wantErr(t, err, ErrConnectionLoss, ErrOutcomeUnknown)
	}, WithMaxRequest(2*wire.DefaultMaxFrame))
	for _, bytes := range []int{0, -1} {
		if _, err := Connect(t.Context(), "10.0.0.1", WithMaxRequest(bytes)); err == nil {
			t.Errorf("Connect with a bound of %d bytes for requests succeeded, want an error", bytes)
		}
	}
}

// TestWithLogger_ConnectionsAndExpiries: the client logs losses of connections and sessions, and nothing per operation.
func TestWithLogger_ConnectionsAndExpiries(t *testing.T) {
	var log bytes.Buffer // its writers take turns: slog's handler has a mutex
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		lines := func(want ...string) {
			t.Helper()
			synctest.Wait()
			got := log.String()
			log.Reset()
			if len(want) == 0 && got != "" {
				t.Errorf("logged %q, want nothing", got)
			}
			for _, w := range want {
				if !strings.Contains(got, w) {
					t.Errorf("logged %q, want a line with %q", got, w)
				}
			}
		}
		must(t, c.Sync(t.Context(), "/"))
		lines()
		s.do(func() { s.down = true })
		s.cutAll()
		<-time.After(time.Second)
		lines(`level=INFO msg="connection lost" server=10.0.0.`, `level=INFO msg="connecting failed" server=10.0.0.`,
			errRefused.Error())
		<-c.Session().Done()
		lines(`level=WARN msg="session assumed lost" session=`)
		s.do(func() { s.down = false })
	}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
}
