//go:build !zookeeper

package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
	for x, err := range c.Feed(t.Context(), "/", made.Czxid, client.FeedEvents(client.EventChildrenChanged)) {
		if must(t, err); strings.Contains(said(x), "changed") {
			t.Errorf("got %q, want children that come and go", said(x))
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

// Revisions are what a znode was, the newest first, in as many replies as it takes; those that were purged have no value.
func TestRevisions(t *testing.T) {
	e := zklitetest.Start(t)
	c := connect(t, e.ConnectString())
	ctx := t.Context()
	_, made, err := c.Create(ctx, "/a", []byte("0"), client.Persistent)
	must(t, err)
	data := func(i int) []byte { return bytes.Repeat([]byte{byte('0' + i)}, 100_000) }
	for i := range 8 {
		_, err := c.Set(ctx, "/a", data(i), -1)
		must(t, err)
	}
	must(t, c.Delete(ctx, "/a", -1))
	all, since, err := c.Revisions(ctx, "/a", 100)
	must(t, err)
	if len(all) != 10 || all[0].Changes[0].Type != client.EventDeleted || all[9].Zxid != made.Czxid || since >= made.Czxid {
		t.Fatalf("got %d revisions since %v, want 10 from the deletion to the creation", len(all), since)
	}
	for i := range 8 {
		if got := all[8-i].Changes[0]; !bytes.Equal(got.Data, data(i)) || got.Hidden || got.Stat.Version != client.Version(i+1) {
			t.Errorf("revision %d has %d bytes, version %d, want %d of %c", i, len(got.Data), got.Stat.Version, 100_000, '0'+i)
		}
	}
	if few, since, err := c.Revisions(ctx, "/a", 2); err != nil || len(few) != 2 || since != few[1].Zxid {
		t.Errorf("got %d revisions since %v (%v), want 2 and the zxid of the second", len(few), since, err)
	}
	_, _, err = c.Create(ctx, "/a", []byte("new"), client.Persistent)
	must(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://"+e.HTTPAddrs()[0]+"/v1/revisions/a", nil)
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	must(t, resp.Body.Close())
	all, _, err = c.Revisions(ctx, "/a", 100)
	must(t, err)
	for i, x := range all {
		if got := x.Changes[0]; got.Hidden != (i > 0) || (len(got.Data) > 0) != (i == 0) {
			t.Errorf("after a purge revision %d is hidden: %v, with %d bytes; want the newest alone", i, got.Hidden, len(got.Data))
		}
	}
	if _, _, err := c.Revisions(ctx, "/none", 1); !errors.Is(err, client.ErrNoNode) {
		t.Errorf("of a znode that never was: error %v, want %v", err, client.ErrNoNode)
	}
	if _, _, err := c.Revisions(ctx, "/a", -1); err != nil {
		t.Errorf("limit -1: error %v, want nothing", err)
	}
	hers := connect(t, e.ConnectString(), client.WithAuth("digest", []byte("ann:secret")))
	_, _, err = hers.Create(ctx, "/hers", []byte("0"), client.Persistent, client.ACL{Perms: client.PermAll, ID: client.ID{Scheme: "auth"}})
	must(t, err)
	if _, _, err := c.Revisions(ctx, "/hers", 1); !errors.Is(err, client.ErrNoAuth) {
		t.Errorf("of a znode that may not be read: error %v, want %v", err, client.ErrNoAuth)
	}
	must(t, hers.Delete(ctx, "/hers", -1))
	if _, _, err := c.Revisions(ctx, "/hers", 1); !errors.Is(err, client.ErrNoNode) {
		t.Errorf("of a znode that could not be read: error %v, want %v", err, client.ErrNoNode)
	}
}
