package client

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// testTimeout is the session timeout of the tests over the fake server.
const testTimeout = 9 * time.Second

// withFake runs f in a bubble of virtual time with a server and a client that is
// connected to it. When f returns everything is closed; a goroutine that is left
// fails the test, because the bubble does not end.
func withFake(t *testing.T, f func(t *testing.T, s *fakeServer, c *Client), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(t)
		defer s.stop()
		c := dialFake(t, s, opts...)
		defer c.Close()
		f(t, s, c)
	})
}

func dialFake(t *testing.T, s *fakeServer, opts ...Option) *Client {
	t.Helper()
	opts = append([]Option{
		WithDialer(s.dial), WithSessionTimeout(testTimeout), withSeed(1, 2),
	}, opts...)
	c, err := Connect(t.Context(), "10.0.0.1,10.0.0.2,10.0.0.3", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Fatalf("error is %v, want %v", err, w)
		}
	}
}

// nextState returns the next change, which must be of the given state.
func nextState(t *testing.T, w *StateWatch, want State) StateChange {
	t.Helper()
	got, ok := <-w.C()
	if !ok || got.State != want {
		t.Fatalf("state is %v (open %v), want %v", got.State, ok, want)
	}
	return got
}

func TestClient_Session_StatesOfAReconnection(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w := c.States()
		first := nextState(t, w, StateConnected)
		s.cutAll()
		suspended := nextState(t, w, StateSuspended)
		wantErr(t, suspended.Err, ErrConnectionLoss)
		if left := time.Until(suspended.Deadline); left <= 0 || left > testTimeout {
			t.Errorf("deadline in %v, want within the session timeout", left)
		}
		again := nextState(t, w, StateReconnected)
		if again.Session.ID != first.Session.ID || again.Session.ID == 0 {
			t.Errorf("session %v after the reconnection, want %v, as before", again.Session.ID, first.Session.ID)
		}
		must(t, c.Close())
		nextState(t, w, StateClosed)
		if _, open := <-w.C(); open {
			t.Error("the channel of states is open after Closed, want it closed")
		}
		if l := get(s, &s.closed); len(l) != 1 || l[0] != first.Session.ID {
			t.Errorf("closed sessions: %v", l)
		}
	})
}

func TestClient_Session_LostAtLocalDeadline(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		old := c.Session()
		if _, _, err := c.Create(t.Context(), "/mine", nil, Ephemeral); err != nil {
			t.Fatal(err)
		}
		_, _, watch, err := c.GetW(t.Context(), "/mine")
		must(t, err)
		answered := time.Now()
		s.do(func() { s.down = true })
		s.cutAll()
		synctest.Wait()
		queued := c.Async().Get(t.Context(), "/mine")
		<-old.Done()
		// A sixteenth earlier than the servers may: a successor that learns of
		// the expiry must not overtake a late timer of ours.
		if d, want := time.Since(answered), testTimeout-testTimeout/16; d != want {
			t.Errorf("lost after %v, want %v", d, want)
		}
		wantErr(t, old.Err(), ErrSessionExpired)
		_, err = queued.Wait(t.Context())
		wantErr(t, err, ErrSessionExpired)
		ev := <-watch.C()
		wantErr(t, ev.Err, ErrSessionExpired)
		if ev.Type != EventEnded || ev.Path != "/mine" {
			t.Errorf("event %+v, want Ended of /mine", ev)
		}
		// The server still knows the session: it must be closed there, and not
		// be used again.
		s.do(func() { s.down = false })
		found, _, err := c.Exists(t.Context(), "/mine")
		must(t, err)
		if found {
			t.Error("the ephemeral of the lost session still exists, want it deleted")
		}
		if c.SessionID() == old.ID {
			t.Error("the lost session is used again, want another one")
		}
		if l := get(s, &s.closed); len(l) != 1 || l[0] != old.ID {
			t.Errorf("closed sessions %v, want %v", l, old.ID)
		}
	})
}

func TestClient_Session_DeadlineCountsFromTheRequestNotTheReply(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		// The server takes a second to answer: it may have restarted its timer at
		// any moment since the request was sent.
		s.create("/a", "")
		var held *fakeConn
		var xid wire.Xid
		s.do(func() {
			s.hook = func(c *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if h.Type == wire.OpGetData {
					held, xid = c, h.Xid
					return noAnswer
				}
				return serve
			}
		})
		sent := time.Now()
		p := c.Async().Get(t.Context(), "/a")
		<-time.After(time.Second)
		s.do(func() { held.answerLocked(xid, &wire.GetDataResponse{}, znode.OK) })
		_, err := p.Wait(t.Context())
		must(t, err)
		want := testTimeout - testTimeout/16
		if d := c.SessionDeadline().Sub(sent); d != want {
			t.Errorf("deadline %v after the request, want %v", d, want)
		}
	})
}

func TestClient_Session_ExpiredByServer(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w := c.States()
		nextState(t, w, StateConnected)
		old := c.Session()
		ctx, cancel := old.Context(t.Context())
		defer cancel()
		s.expire(old.ID)
		nextState(t, w, StateSuspended)
		wantErr(t, nextState(t, w, StateExpired).Err, ErrSessionExpired)
		nextState(t, w, StateConnecting)
		nextState(t, w, StateConnected)
		if c.SessionID() == old.ID {
			t.Errorf("session %v after the expiry, want another one", old.ID)
		}
		_, _, err := c.Create(ctx, "/late", nil, Ephemeral)
		wantErr(t, err, ErrSessionExpired)
		if errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("error %v, want none of an unknown outcome: it was never sent", err)
		}
	})
}

func TestClient_Session_FinalExpiry(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w := c.States()
		nextState(t, w, StateConnected)
		s.expire(c.SessionID())
		nextState(t, w, StateSuspended)
		nextState(t, w, StateExpired)
		if _, open := <-w.C(); open {
			t.Error("a state follows a final expiry, want none")
		}
		_, _, err := c.Get(t.Context(), "/")
		wantErr(t, err, ErrSessionExpired)
	}, WithFinalExpiry())
}

func TestClient_Session_OtherSessionHandedOut(t *testing.T) {
	// ClickHouse Keeper once answered a request for an old session with a new
	// one; a client that does not look keeps believing in its ephemerals.
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		old := c.Session()
		s.do(func() {
			s.connectHook = func(req *wire.ConnectRequest, resp *wire.ConnectResponse) {
				if req.SessionID != 0 {
					resp.SessionID, resp.TimeoutMillis = 0x77, req.TimeoutMillis
				}
			}
		})
		s.cutAll()
		<-old.Done()
		wantErr(t, old.Err(), ErrSessionExpired)
	})
}

func TestClient_Ping_KeepsAnIdleSession(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		<-time.After(20 * testTimeout)
		pings := 0
		s.do(func() {
			for _, op := range s.requests {
				if op == wire.OpPing {
					pings++
				}
			}
		})
		if pings < 59 || pings > 60 {
			t.Errorf("%d pings in 20 timeouts, want one every third of one", pings)
		}
		if n := len(get(s, &s.connects)); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

func TestClient_Ping_SilentServerIsDropped(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w := c.States()
		nextState(t, w, StateConnected)
		start := time.Now()
		s.do(func() { s.silent = true })
		lost := nextState(t, w, StateSuspended)
		if d := time.Since(start); d != testTimeout*2/3 {
			t.Errorf("dropped after %v, want %v", d, testTimeout*2/3)
		}
		wantErr(t, lost.Err, os.ErrDeadlineExceeded)
		s.do(func() { s.silent = false })
		nextState(t, w, StateReconnected)
		if l := get(s, &s.dials); l[0] == l[1] {
			t.Errorf("the silent server is asked first: %v", l)
		}
	})
}

func TestClient_Detach_SessionGoesOnElsewhere(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		_, _, err := c.Create(t.Context(), "/mine", nil, Ephemeral)
		must(t, err)
		keys := c.Credentials()
		must(t, c.Detach())
		c2 := dialFake(t, s, WithSession(keys))
		if c2.SessionID() != keys.ID {
			t.Errorf("session %v, want %v", c2.SessionID(), keys.ID)
		}
		found, _, err := c2.Exists(t.Context(), "/mine")
		must(t, err)
		if !found {
			t.Error("the ephemeral of the continued session does not exist, want it to")
		}
		must(t, c2.Close())
		_, err = Connect(t.Context(), "10.0.0.1", WithDialer(s.dial), WithSession(keys))
		wantErr(t, err, ErrSessionExpired)
	})
}

func TestStateWatch_SlowReader_LearnsHowManyAreMissing(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w := c.States()
		for range stateQueue {
			s.cutAll()
			<-time.After(testTimeout / 2)
		}
		synctest.Wait()
		// Connected, and two changes for every cut.
		total, n := 1+2*stateQueue, 0
		for len(w.C()) > 0 {
			n += 1 + (<-w.C()).Missed
		}
		if n != total {
			t.Errorf("%d changes with the missed ones, want %d", n, total)
		}
		w.Cancel()
		w.Cancel()
	})
}

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
