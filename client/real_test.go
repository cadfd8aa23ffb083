package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
)

// What follows runs against a real server: zk-lite in this process, and with the
// build tag zookeeper Apache ZooKeeper (see startServer).

func connect(tb testing.TB, servers string, opts ...client.Option) *client.Client {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 60*time.Second)
	defer cancel()
	c, err := client.Connect(ctx, servers, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() }) // the test may have closed it
	return c
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantErr(tb testing.TB, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("error %v, want %v", err, want)
	}
}

func TestReal_ZnodesAndErrors(t *testing.T) {
	ctx := t.Context()
	servers := startServer(t)
	connect(t, servers).EnsurePath(ctx, "/app", client.Persistent)
	c := connect(t, servers+"/app")
	path, stat, err := c.Create(ctx, "/a", []byte("1"), client.Persistent)
	must(t, err)
	if path != "/a" || stat.Czxid == 0 || stat.DataLength != 1 {
		t.Errorf("created %q with %+v, want /a with a zxid and 1 byte", path, stat)
	}
	_, _, err = c.Create(ctx, "/a", nil, client.Persistent)
	wantErr(t, err, client.ErrNodeExists)
	_, _, err = c.Create(ctx, "/none/x", nil, client.Persistent)
	wantErr(t, err, client.ErrNoNode)
	next, err := c.Set(ctx, "/a", []byte("22"), stat.Version)
	must(t, err)
	_, err = c.Set(ctx, "/a", nil, stat.Version)
	wantErr(t, err, client.ErrBadVersion)
	if !strings.Contains(err.Error(), "/a") {
		t.Errorf("the error does not name the znode: %v", err)
	}
	data, got, err := c.Get(ctx, "/a")
	must(t, err)
	if string(data) != "22" || got != next {
		t.Errorf("%q %+v, want %+v", data, got, next)
	}
	seq, _, err := c.Create(ctx, "/a/s-", nil, client.EphemeralSequential)
	must(t, err)
	if seq != "/a/s-0000000000" {
		t.Errorf("created %s, want /a/s-0000000000", seq)
	}
	wantErr(t, c.Delete(ctx, "/a", client.AnyVersion), client.ErrNotEmpty)
	own, err := c.GetEphemerals(ctx, "/")
	must(t, err)
	n, err := c.GetAllChildrenNumber(ctx, "/")
	must(t, err)
	names, _, err := c.Children(ctx, "/a")
	must(t, err)
	if !slices.Equal(own, []string{seq}) || n != 2 || !slices.Equal(names, []string{"s-0000000000"}) {
		t.Errorf("ephemerals %v, %d below, children %v; want %s, 2, s-0000000000", own, n, names, seq)
	}
	guarded, _, err := c.CreateProtected(ctx, "/a/lock-", nil, client.EphemeralSequential)
	must(t, err)
	if !strings.HasPrefix(guarded, "/a/_c_") {
		t.Errorf("created %s, want a name that begins with _c_", guarded)
	}
	must(t, c.Sync(ctx, "/"))
	must(t, c.Close())
	other := connect(t, servers)
	if names, _, err := other.Children(ctx, "/app/a"); err != nil || len(names) != 0 {
		t.Errorf("children %v (%v) after the end of the session, want none", names, err)
	}
}

func TestReal_Transactions(t *testing.T) {
	ctx := t.Context()
	c := connect(t, startServer(t))
	m := c.Multi()
	made := m.Create("/m", []byte("x"), client.Persistent)
	child := m.Create("/m/c-", nil, client.PersistentSequential)
	set := m.Set("/m", []byte("y"), 0)
	m.Check("/m", 1)
	must(t, m.Commit(ctx))
	if made.Path != "/m" || child.Path != "/m/c-0000000000" || set.Stat.Version != 1 {
		t.Errorf("results %+v, %+v, %+v; want /m, /m/c-0000000000 and version 1", made, child, set)
	}
	bad := c.Multi()
	bad.Delete(child.Path, client.AnyVersion)
	bad.Check("/m", 7)
	err := bad.Commit(ctx)
	wantErr(t, err, client.ErrBadVersion)
	var at *client.MultiError
	if !errors.As(err, &at) || at.Index != 1 {
		t.Errorf("blamed: %v", err)
	}
	r := c.MultiRead()
	there, missing, list := r.Get("/m"), r.Get("/none"), r.Children("/m")
	must(t, r.Do(ctx))
	wantErr(t, missing.Err, client.ErrNoNode)
	if string(there.Data) != "y" || len(list.Children) != 1 {
		t.Errorf("results %+v, %+v; want data y and one child", there, list)
	}
}

func TestReal_ACLs(t *testing.T) {
	ctx := t.Context()
	servers := startServer(t)
	c, stranger := connect(t, servers), connect(t, servers)
	must(t, c.AddAuth(ctx, "digest", []byte("user:secret")))
	ids, err := c.WhoAmI(ctx)
	must(t, err)
	if !slices.ContainsFunc(ids, func(id client.ID) bool { return id.Scheme == "digest" }) {
		t.Errorf("who am I: %v", ids)
	}
	mine := client.ACL{Perms: client.PermAll, ID: client.ID{Scheme: "auth"}}
	_, _, err = c.Create(ctx, "/mine", nil, client.Persistent, mine)
	must(t, err)
	_, _, err = stranger.Get(ctx, "/mine")
	wantErr(t, err, client.ErrNoAuth)
	acl, stat, err := c.GetACL(ctx, "/mine")
	must(t, err)
	if len(acl) != 1 || !strings.HasPrefix(acl[0].ID.ID, "user:") {
		t.Errorf("the ACL is %v, want one entry for the user", acl)
	}
	open := client.ACL{Perms: client.PermRead, ID: client.ID{Scheme: "world", ID: "anyone"}}
	_, err = c.SetACL(ctx, "/mine", []client.ACL{open, acl[0]}, stat.Aversion)
	must(t, err)
	must(t, stranger.Sync(ctx, "/mine"))
	if _, _, err := stranger.Get(ctx, "/mine"); err != nil {
		t.Errorf("read with permission: %v", err)
	}
}

func TestReal_Watches(t *testing.T) {
	ctx := t.Context()
	servers := startServer(t)
	c, writer := connect(t, servers), connect(t, servers)
	expect := func(w *client.Watch, typ client.EventType, path string) {
		t.Helper()
		select {
		case e := <-w.C():
			if e.Type != typ || e.Path != path {
				t.Errorf("event %+v, want %v %s", e, typ, path)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no event in 30 seconds, want %v %s", typ, path)
		}
	}
	_, _, missing, err := c.ExistsW(ctx, "/w")
	must(t, err)
	all, err := c.AddWatch(ctx, "/tree", client.ModeRecursive)
	must(t, err)
	_, _, err = writer.Create(ctx, "/w", nil, client.Persistent)
	must(t, err)
	expect(missing, client.EventCreated, "/w")
	_, _, data, err := c.GetW(ctx, "/w")
	must(t, err)
	_, _, children, err := c.ChildrenW(ctx, "/w")
	must(t, err)
	_, _, err = writer.Create(ctx, "/w/x", nil, client.Persistent)
	must(t, err)
	_, err = writer.Set(ctx, "/w", []byte("1"), client.AnyVersion)
	must(t, err)
	expect(children, client.EventChildrenChanged, "/w")
	expect(data, client.EventDataChanged, "/w")
	must(t, writer.EnsurePath(ctx, "/tree/a/b", client.Persistent))
	for _, path := range []string{"/tree", "/tree/a", "/tree/a/b"} {
		expect(all, client.EventCreated, path)
	}
	all.Cancel()
}

func TestReal_Cache_FollowsAndCatchesUp(t *testing.T) {
	ctx := t.Context()
	servers := startServer(t)
	c, writer := connect(t, servers), connect(t, servers)
	must(t, writer.EnsurePath(ctx, "/c/a", client.Persistent))
	k, err := client.NewCache(ctx, c, "/c")
	must(t, err)
	defer k.Close()
	if k.Len() != 2 {
		t.Errorf("%d znodes, want 2", k.Len())
	}
	stat, err := writer.Set(ctx, "/c/a", []byte("new"), client.AnyVersion)
	must(t, err)
	must(t, k.WaitZxid(ctx, stat.Mzxid))
	if n, ok := k.Get("/c/a"); !ok || string(n.Data) != "new" || n.Stat != stat {
		t.Errorf("the cache has %+v (%t), want data new with %+v", n, ok, stat)
	}
	must(t, writer.Delete(ctx, "/c/a", client.AnyVersion))
	_, stat, err = writer.Create(ctx, "/elsewhere", nil, client.Persistent)
	must(t, err)
	must(t, k.WaitZxid(ctx, stat.Czxid))
	if got := k.Children("/c"); len(got) != 0 {
		t.Errorf("deleted, and in the cache: %v", got)
	}
}

// TestReal_WriteByCallerAndWriter mixes requests that find the connection idle, which
// their callers write, with bursts and with large ones, which the writer writes. Were
// two of them ever written in another order than they were queued, or mixed up, the
// answers would not fit, and a Set would not find the version that the one before has left.
func TestReal_WriteByCallerAndWriter(t *testing.T) {
	const seed = 20
	t.Logf("seed %d", seed)
	servers := startServer(t)
	c := connect(t, servers)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(g)))
			path := fmt.Sprintf("/direct%d", g)
			_, stat, err := c.Create(t.Context(), path, nil, client.Persistent)
			if err != nil {
				t.Error(err)
				return
			}
			version := stat.Version
			for range 60 {
				var burst []*client.Pending[client.Stat]
				for range 1 + random.IntN(4)*random.IntN(4) {
					data := make([]byte, 10<<(10*random.IntN(2)))
					burst = append(burst, c.Async().Set(t.Context(), path, data, version))
					version++
				}
				for _, p := range burst {
					if _, err := p.Wait(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
}
