package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
)

func wantEvent(t *testing.T, w *Watch, typ EventType, path string) Event {
	t.Helper()
	ev, open := <-w.C()
	if !open || ev.Type != typ || ev.Path != path {
		t.Fatalf("event %v %s (open %v, error %v), want %v %s", ev.Type, ev.Path, open, ev.Err,
			typ, path)
	}
	return ev
}

func wantClosed(t *testing.T, w *Watch) {
	t.Helper()
	if ev, open := <-w.C(); open {
		t.Fatalf("event %+v, want a closed channel", ev)
	}
}

func wantNoWatches(t *testing.T, c *Client) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.watches.paths) != 0 || c.watches.recursive != 0 {
		t.Errorf("the registry has %d recursive watches and %v, want nothing", c.watches.recursive, c.watches.paths)
	}
}

func TestWatch_OneShot_OneEventThenClosed(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		ctx := t.Context()
		found, _, w1, err := c.ExistsW(ctx, "/a")
		must(t, err)
		if found {
			t.Fatal("/a exists, want not")
		}
		_, _, w2, err := c.ChildrenW(ctx, "/")
		must(t, err)
		s.create("/a", "1")
		wantEvent(t, w1, EventCreated, "/a")
		wantClosed(t, w1)
		wantEvent(t, w2, EventChildrenChanged, "/")
		wantClosed(t, w2)
		_, _, w3, err := c.GetW(ctx, "/a")
		must(t, err)
		s.set("/a", "2")
		s.set("/a", "3")
		wantEvent(t, w3, EventDataChanged, "/a")
		wantClosed(t, w3)
		_, _, w4, err := c.GetW(ctx, "/none")
		wantErr(t, err, ErrNoNode)
		if w4 != nil {
			t.Errorf("watch %v with an error, want none", w4)
		}
		wantNoWatches(t, c)
		must(t, w3.Err())
	})
}

func TestWatch_Reconnect_MissedEventsComeAndNoOthers(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		ctx := t.Context()
		for _, name := range []string{"/same", "/set", "/gone", "/kids"} {
			s.create(name, "")
		}
		watch := map[string]*Watch{}
		for _, name := range []string{"/same", "/set", "/gone"} {
			_, _, w, err := c.GetW(ctx, name)
			must(t, err)
			watch[name] = w
		}
		_, _, kids, err := c.ChildrenW(ctx, "/kids")
		must(t, err)
		_, _, born, err := c.ExistsW(ctx, "/born")
		must(t, err)

		s.do(func() { s.down = true })
		s.cutAll()
		synctest.Wait()
		s.set("/set", "x")
		s.remove("/gone")
		s.create("/kids/k", "")
		s.create("/born", "")
		s.do(func() { s.down = false })

		wantEvent(t, watch["/set"], EventDataChanged, "/set")
		wantEvent(t, watch["/gone"], EventDeleted, "/gone")
		wantEvent(t, kids, EventChildrenChanged, "/kids")
		wantEvent(t, born, EventCreated, "/born")
		must(t, c.Sync(ctx, "/"))
		if len(watch["/same"].C()) != 0 {
			t.Error("an event came for a znode that has not changed, want none")
		}
		s.set("/same", "y")
		wantEvent(t, watch["/same"], EventDataChanged, "/same")
	})
}

// TestWatch_Reconnect_BreaksHalfWay breaks the connection after the reply to the
// first of several setWatches, whose zxid is newer than the events that the other
// watches have missed. ZooKeeper's own client uses that zxid for the next
// attempt, and loses those events.
func TestWatch_Reconnect_BreaksHalfWay(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		ctx := t.Context()
		const n = 600
		pad := strings.Repeat("x", 1000)
		var all []*Watch
		var pending []*Pending[GetReply]
		for i := range n {
			path := fmt.Sprintf("/%03d%s", i, pad)
			s.create(path, "")
			pending = append(pending, c.Async().GetW(ctx, path))
		}
		for _, p := range pending {
			reply, err := p.Wait(ctx)
			must(t, err)
			all = append(all, reply.Watch)
		}
		s.do(func() {
			s.down = true
			chunks := 0
			s.hook = func(_ *fakeConn, h wire.RequestHeader, body wire.Request) verdict {
				if h.Type != wire.OpSetWatches {
					return serve
				}
				if req := body.(*wire.SetWatchesRequest); len(req.Append(nil)) > restoreChunk+1024 {
					t.Errorf("setWatches of %d bytes, want at most %d", len(req.Append(nil)), restoreChunk+1024)
				}
				if chunks++; chunks == 2 {
					return cut
				}
				return serve
			}
		})
		s.cutAll()
		synctest.Wait()
		for _, w := range all {
			s.set(w.Path(), "changed")
		}
		s.do(func() { s.down = false })
		for _, w := range all {
			wantEvent(t, w, EventDataChanged, w.Path())
		}
		if n := len(get(s, &s.connects)); n != 3 {
			t.Errorf("%d connections, want 3: the test is wrong", n)
		}
	})
}

func TestWatch_Event_DoesNotMoveLastZxid(t *testing.T) {
	// Two watches fire in one transaction; the connection breaks between the
	// events. The second must not be taken for seen.
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		ctx := t.Context()
		s.create("/a", "")
		s.create("/b", "")
		_, _, wa, err := c.GetW(ctx, "/a")
		must(t, err)
		_, _, wb, err := c.GetW(ctx, "/b")
		must(t, err)
		s.do(func() {
			s.zxid++
			s.setLocked("/a", []byte("1"))
			for conn := range s.conns {
				conn.sendLocked(nil)
				conn.data = map[string]bool{}
			}
			s.setLocked("/b", []byte("1")) // the same transaction
		})
		wantEvent(t, wa, EventDataChanged, "/a")
		wantEvent(t, wb, EventDataChanged, "/b")
	})
}

func TestWatch_Cancel_LeavesNothing(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		ctx := t.Context()
		var all []*Watch
		for range 10 {
			_, _, w, err := c.ExistsW(ctx, "/a")
			must(t, err)
			all = append(all, w)
		}
		for _, w := range all[1:] {
			w.Cancel()
		}
		must(t, c.CheckWatches(ctx, "/a", WatcherAny))
		// A request for a new watch is on its way while the last one goes: the
		// server must not lose it.
		next := c.Async().ExistsW(ctx, "/a")
		all[0].Cancel()
		reply, err := next.Wait(ctx)
		must(t, err)
		must(t, c.CheckWatches(ctx, "/a", WatcherAny))
		s.create("/a", "")
		wantEvent(t, reply.Watch, EventCreated, "/a")
		_, _, w, err := c.GetW(ctx, "/a")
		must(t, err)
		w.Cancel()
		wantErr(t, c.CheckWatches(ctx, "/a", WatcherAny), ErrNoWatcher)
		wantNoWatches(t, c)
	})
}

func TestWatch_AbandonedRequest_LeavesNothing(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		ctx, cancel := contextWithTimeout(t, time.Second)
		defer cancel()
		var conn *fakeConn
		var header wire.RequestHeader
		s.do(func() {
			s.hook = func(fc *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if h.Type == wire.OpExists {
					conn, header = fc, h
					return noAnswer
				}
				return serve
			}
		})
		_, _, _, err := c.ExistsW(ctx, "/a")
		wantErr(t, err, ctx.Err())
		s.do(func() {
			conn.data["/a"] = true
			conn.answerLocked(header.Xid, nil, ErrNoNode)
		})
		synctest.Wait()
		wantErr(t, c.CheckWatches(t.Context(), "/a", WatcherAny), ErrNoWatcher)
		wantNoWatches(t, c)
	})
}

func TestWatch_SessionLost_EndsWithReason(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		_, _, one, err := c.ExistsW(t.Context(), "/a")
		must(t, err)
		rec, err := c.AddWatch(t.Context(), "/", ModeRecursive)
		must(t, err)
		s.expire(c.SessionID())
		for _, w := range []*Watch{one, rec} {
			ev, open := <-w.C()
			if !open || ev.Type != EventEnded || !errors.Is(ev.Err, ErrSessionExpired) {
				t.Errorf("event %+v (open %t), want Ended with the expiry", ev, open)
			}
			wantClosed(t, w)
			wantErr(t, w.Err(), ErrSessionExpired)
		}
		wantNoWatches(t, c)
	})
}

func TestWatch_RestoreRefused_EndsWithReason(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		_, _, w, err := c.ExistsW(t.Context(), "/a")
		must(t, err)
		s.do(func() {
			s.hook = func(fc *fakeConn, h wire.RequestHeader, _ wire.Request) verdict {
				if h.Type == wire.OpSetWatches {
					fc.answerLocked(h.Xid, nil, ErrUnimplemented)
					return noAnswer
				}
				return serve
			}
		})
		s.cutAll()
		ev := <-w.C()
		wantErr(t, ev.Err, ErrUnimplemented)
	})
}

func TestWatch_Order_EventBeforeReply(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w, err := c.AddWatch(t.Context(), "/", ModeRecursive)
		must(t, err)
		for i := range 100 {
			path, _, err := c.Create(t.Context(), fmt.Sprintf("/%d", i), nil, Persistent)
			must(t, err)
			select {
			case ev := <-w.C():
				if ev.Path != path {
					t.Fatalf("event %+v, want %s", ev, path)
				}
			default:
				t.Fatalf("create of %s completed before its event came, want it after", path)
			}
		}
	})
}

func TestWatch_Persistent_RearmedAfterReconnect(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		ctx := t.Context()
		rec, err := c.AddWatch(ctx, "/", ModeRecursive)
		must(t, err)
		per, err := c.AddWatch(ctx, "/", ModePersistent)
		must(t, err)
		s.do(func() { // the fake keeps one mode for a path, as ZooKeeper 3.8
			for conn := range s.conns {
				conn.persist["/"] = wire.AddWatchPersistentRecursive
			}
		})
		s.create("/a", "")
		wantEvent(t, rec, EventCreated, "/a")
		s.do(func() { s.down = true })
		s.cutAll()
		synctest.Wait()
		s.create("/missed", "")
		s.do(func() { s.down = false })
		ev := wantEvent(t, rec, EventRearmed, "/")
		if z := get(s, &s.zxid); ev.Zxid < z {
			t.Errorf("rearmed at %v, want at the server's zxid %v or later", ev.Zxid, z)
		}
		wantEvent(t, per, EventRearmed, "/")
		s.set("/a", "2")
		wantEvent(t, rec, EventDataChanged, "/a")
		rec.Cancel()
		rec.Cancel()
		wantClosed(t, rec)
		wantErr(t, rec.Err(), ErrWatchCancelled)
	})
}

func TestWatch_Persistent_OverflowEndsWithAnError(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		w, err := c.AddWatch(t.Context(), "/a", ModePersistent, WithWatchQueue(3))
		must(t, err)
		s.create("/a", "")
		for range 5 {
			s.set("/a", "x")
		}
		synctest.Wait()
		wantEvent(t, w, EventCreated, "/a")
		wantEvent(t, w, EventDataChanged, "/a")
		wantEvent(t, w, EventDataChanged, "/a")
		wantErr(t, wantEvent(t, w, EventEnded, "/a").Err, ErrWatchOverflow)
		wantClosed(t, w)
		wantErr(t, c.CheckWatches(t.Context(), "/a", WatcherAny), ErrNoWatcher)
	})
}

func TestWatch_RemoveWatches_EndsThem(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		_, _, w, err := c.ExistsW(t.Context(), "/a")
		must(t, err)
		must(t, c.RemoveWatches(t.Context(), "/a", WatcherAny))
		wantClosed(t, w)
		wantErr(t, w.Err(), ErrWatchCancelled)
		wantErr(t, c.RemoveWatches(t.Context(), "/a", WatcherAny), ErrNoWatcher)
	})
}
