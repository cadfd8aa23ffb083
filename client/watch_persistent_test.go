package client

import (
	"testing"
	"testing/synctest"

	"github.com/zk-lite/zk-lite/internal/wire"
)

func TestWatch_Persistent_RearmedAfterReconnect(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		ctx := t.Context()
		rec, err := c.AddWatch(ctx, "/", ModeRecursive)
		mustNot(t, err)
		per, err := c.AddWatch(ctx, "/", ModePersistent)
		mustNot(t, err)
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
			t.Errorf("rearmed at %v, server is at %v", ev.Zxid, z)
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
		mustNot(t, err)
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
		mustNot(t, err)
		mustNot(t, c.RemoveWatches(t.Context(), "/a", WatcherAny))
		wantClosed(t, w)
		wantErr(t, w.Err(), ErrWatchCancelled)
		wantErr(t, c.RemoveWatches(t.Context(), "/a", WatcherAny), ErrNoWatcher)
	})
}
