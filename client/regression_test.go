package client

import (
	"context"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
)

// Close used to end the session's contexts only when the server had answered. By
// then the server had deleted the ephemerals, so for a moment two processes could
// hold one lock, and the watch on a lock's own znode reported the deletion as
// another client's. Found by the tests of package recipes.
func TestRegression_Close_SessionEndsBeforeTheServerIsTold(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.silent = true })
		session := c.Session()
		ctx, cancel := session.Context(t.Context())
		defer cancel()
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		<-ctx.Done()
		wantErr(t, session.Err(), ErrClosed)
		select {
		case err := <-closed:
			t.Errorf("Close returned %v, want it to wait for the silent server", err)
		default:
		}
		wantErr(t, <-closed, ErrNotClosed)
	})
}

// Every transaction with a create that succeeded broke the connection to a server of
// ZooKeeper 3.8, with ErrProtocol: there, a create2 in a multi is answered as a create.
// Found by the tests of package recipes against Debian's packages.
func TestRegression_Multi_CreateAnsweredWithoutStat(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.oldMulti = true })
		m := c.Multi()
		made := m.Create("/m", nil, Persistent)
		set := m.Set("/m", []byte("x"), 0)
		must(t, m.Commit(t.Context()))
		if made.Path != "/m" || made.Stat != (Stat{}) || set.Stat.Version != 1 {
			t.Errorf("created %q with %+v, set %+v; want /m without Stat, version 1", made.Path, made.Stat, set.Stat)
		}
	})
}

// The data of Set and Create, and the ACL of SetACL, did not count for the bound of the queue (DefaultMaxQueued): a
// client that could not send kept 4,096 requests of a megabyte.
func TestRegression_Queue_CountsTheDataOfWrites(t *testing.T) {
	withFake(t, func(t *testing.T, s *fakeServer, c *Client) {
		s.do(func() { s.silent = true })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		data := make([]byte, wire.DefaultMaxFrame-100)
		queued := 0
		for i := 0; ctx.Err() == nil; i++ {
			if i%2 == 0 {
				c.Async().Set(ctx, "/", data, AnyVersion)
			} else {
				c.Async().Create(ctx, "/a", data, Persistent)
			}
			if ctx.Err() == nil {
				queued++
			}
		}
		if want := DefaultMaxQueued / wire.DefaultMaxFrame; queued != want {
			t.Errorf("%d writes of a megabyte were queued, want %d", queued, want)
		}
	})
}
