//go:build !zookeeper

package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// said is a transaction as text.
func said(x *client.Transaction) (text string) {
	for i, c := range x.Changes {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%v %s=%s", c.Type, c.Path, c.Data)
		if c.Before != nil {
			text += " was " + string(c.Before)
		}
	}
	return text
}

// A feed has whole transactions with their values and author, from a position on, and waits for more; filters leave
// changes out.
func TestFeed(t *testing.T) {
	servers := startServer(t)
	must(t, connect(t, servers).EnsurePath(t.Context(), "/app", client.Persistent))
	c := connect(t, servers+"/app", client.WithAuth("digest", []byte("ann:secret")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, made, err := c.Create(ctx, "/a", []byte("0"), client.Persistent)
	must(t, err)
	_, err = c.Set(ctx, "/a", []byte("1"), -1)
	must(t, err)
	changes := []string{"NodeDataChanged /a=1 was 0", "NodeCreated /b=x, NodeDataChanged /a=2 was 1", "NodeDeleted /b=x"}
	n := 0
	for x, err := range c.Feed(ctx, "/", made.Czxid, client.FeedBefore()) {
		if err != nil {
			if n != len(changes) || !errors.Is(err, context.Canceled) {
				t.Errorf("after %d transactions error %v, want %v after %d", n, err, context.Canceled, len(changes))
			}
			break
		}
		if got := said(x); got != changes[n] {
			t.Errorf("transaction %d is %q, want %q", n, got, changes[n])
		}
		if want := []client.ID{{Scheme: "digest", ID: "ann:x"}}; !slices.Equal(x.Author, want) || x.Session != c.SessionID() {
			t.Errorf("the author is %v in session %v, want %v in %v", x.Author, x.Session, want, c.SessionID())
		}
		switch n++; n {
		case 1: // the feed waits for it
			m := c.Multi()
			m.Create("/b", []byte("x"), client.Ephemeral)
			m.Set("/a", []byte("2"), -1)
			must(t, m.Commit(ctx))
		case 2:
			must(t, c.Delete(ctx, "/b", -1))
		case 3:
			cancel()
		}
	}
	opts := []client.FeedOption{client.FeedModes(client.Ephemeral), client.FeedEvents(client.EventDeleted)}
	for x, err := range c.Feed(t.Context(), "/b", made.Czxid, opts...) {
		if must(t, err); said(x) != changes[2] {
			t.Errorf("got %q, want %q", said(x), changes[2])
		}
		break
	}
}

// A feed continues at other servers while those that it has been at end, and has every transaction once.
func TestFeed_OverServers(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	c, writer := connect(t, e.ConnectString()), connect(t, e.ConnectString())
	_, made, err := writer.Create(t.Context(), "/n", []byte("0"), client.Persistent)
	must(t, err)
	const total = 200
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		for i := 1; i <= total; i++ {
			for done := false; !done && t.Context().Err() == nil; {
				_, err := writer.Set(t.Context(), "/n", fmt.Append(nil, i), client.Version(i-1))
				done = err == nil || errors.Is(err, client.ErrBadVersion) // it has happened although the answer was lost
			}
		}
	})
	n := 0
	for x, err := range c.Feed(t.Context(), "/n", made.Czxid) {
		must(t, err)
		if n++; said(x) != fmt.Sprintf("NodeDataChanged /n=%d", n) {
			t.Fatalf("transaction %d is %q", n, said(x))
		}
		if n%50 == 25 {
			e.Stop(n / 50 % 3)
			e.Restart(n / 50 % 3)
		}
		if n == total {
			break
		}
	}
}

// Who comes too late learns where to begin.
func TestFeed_TooOld(t *testing.T) {
	ctx := t.Context()
	c := connect(t, zklitetest.Start(t, zklitetest.WithSetting("limits.changesBytes", "1MiB")).ConnectString())
	_, made, err := c.Create(ctx, "/n", nil, client.Persistent)
	must(t, err)
	for range 12 {
		_, err := c.Set(ctx, "/n", make([]byte, 100_000), -1)
		must(t, err)
	}
	for x, err := range c.Feed(ctx, "/", made.Czxid) {
		var old *client.TooOldError
		if !errors.As(err, &old) || old.Since != made.Czxid {
			t.Fatalf("got %v, error %v, want a TooOldError since %v", x, err, made.Czxid)
		}
		_, stat, err := c.Get(ctx, "/n")
		must(t, err)
		if old.Zxid < stat.Mzxid {
			t.Errorf("the feed goes on from %v, before the last change, %v", old.Zxid, stat.Mzxid)
		}
	}
}
