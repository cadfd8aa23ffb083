//go:build !zookeeper

package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// znodesOf reads a whole subtree.
func znodesOf(t *testing.T, tree *client.Tree, path string) (all []*client.TreeZnode) {
	t.Helper()
	for z, err := range tree.Znodes(t.Context(), path) {
		must(t, err)
		all = append(all, z)
	}
	return all
}

// fill creates so many znodes below a path.
func fill(t *testing.T, c *client.Client, path string, n int) {
	t.Helper()
	for i := range (n + 999) / 1000 {
		m := c.Multi()
		for j := range 1000 {
			m.Create(fmt.Sprintf("%s/%05d", path, 1000*i+j), []byte("x"), client.Persistent)
		}
		must(t, m.Commit(t.Context()))
	}
}

// A subtree has data, Stats and ACLs, parents first, below a chroot, too; of what the client may not read it has the
// path.
func TestTree(t *testing.T) {
	servers := startServer(t)
	admin := connect(t, servers, client.WithAuth("digest", []byte("ann:secret")))
	must(t, admin.EnsurePath(t.Context(), "/app/a/x", client.Persistent))
	_, _, err := admin.Create(t.Context(), "/app/a-b", []byte("1"), client.Ephemeral)
	must(t, err)
	_, _, err = admin.Create(t.Context(), "/app/b", nil, client.Persistent, client.CreatorACL()...)
	must(t, err)
	_, _, err = admin.Create(t.Context(), "/app/b/c", nil, client.Persistent)
	must(t, err)
	c := connect(t, servers+"/app")
	tree, err := c.Tree(t.Context(), "/")
	must(t, err)
	defer tree.Close()
	var got []string
	for _, z := range znodesOf(t, tree, "/") {
		got = append(got, fmt.Sprint(z.Path, " ", z.Mode == client.Ephemeral, " ", z.Hidden, " ", len(z.ACL)))
		data, stat, err := c.Get(t.Context(), z.Path)
		if !z.Hidden && (err != nil || stat != z.Stat || string(data) != string(z.Data)) {
			t.Errorf("%s has %q %+v, want %q %+v (error %v)", z.Path, z.Data, z.Stat, data, stat, err)
		}
	}
	want := []string{
		"/ false false 1", "/a false false 1", "/a/x false false 1", "/a-b true false 1", "/b false true 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for path, want := range map[string]error{
		"/none": client.ErrNoNode, "/b": client.ErrNoAuth, "x": client.ErrBadArguments, "": client.ErrBadArguments,
	} {
		_, err := c.Tree(t.Context(), "/", path)
		wantErr(t, err, want)
	}
	for _, err := range tree.Znodes(t.Context(), "/other") {
		wantErr(t, err, client.ErrBadArguments)
	}
}

// Two large subtrees of one state, read a part of each in turn, and the feed after it: while transactions move amounts
// from one to the other, the sums are right. A second Tree of a client ends the first; a third client waits for
// its turn.
func TestTree_IsOneState(t *testing.T) {
	servers := startServer(t)
	c, writer := connect(t, servers), connect(t, servers)
	const total = 1000
	for _, path := range []string{"/left", "/right"} {
		must(t, c.EnsurePath(t.Context(), path, client.Persistent))
		fill(t, c, path, 5000)
	}
	_, err := c.Set(t.Context(), "/left", []byte(strconv.Itoa(total)), -1)
	must(t, err)
	_, err = c.Set(t.Context(), "/right", []byte("0"), -1)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	defer writing.Wait()
	defer cancel()
	writing.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			m := writer.Multi()
			m.Set("/left", []byte(strconv.Itoa(total-i%total)), -1)
			m.Set("/right", []byte(strconv.Itoa(i%total)), -1)
			if err := m.Commit(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("the transaction: error %v, want none", err)
				return
			}
		}
	})
	amount := func(data []byte) int {
		n, err := strconv.Atoi(string(data))
		must(t, err)
		return n
	}
	for range 5 {
		tree, err := c.Tree(ctx, "/left", "/right")
		must(t, err)
		left := znodesOf(t, tree, "/left")
		right := znodesOf(t, tree, "/right")
		sum := amount(left[0].Data) + amount(right[0].Data)
		if sum != total || len(left) != 5001 || len(right) != 5001 {
			t.Fatalf("%v: the sum is %d of %d and %d znodes, want %d of 5001 and 5001",
				tree.Zxid, sum, len(left), len(right), total)
		}
		for x, err := range c.Feed(ctx, "/", tree.Zxid) {
			must(t, err)
			if n := amount(x.Changes[0].Data); n != amount(left[0].Data)-1 && n != total {
				t.Errorf("the feed begins with %d, want the transaction after that of %s", n, left[0].Data)
			}
			break
		}
	}
	first, err := c.Tree(ctx, "/left")
	must(t, err)
	second, err := c.Tree(ctx, "/right")
	must(t, err)
	for _, err := range first.Znodes(ctx, "/left") {
		wantErr(t, err, client.ErrTreeLost)
	}
	another, err := writer.Tree(ctx, "/left")
	must(t, err)
	defer another.Close()
	waited, other := make(chan error, 1), connect(t, servers)
	go func() {
		tree, err := other.Tree(ctx, "/right")
		if err == nil {
			tree.Close()
		}
		waited <- err
	}()
	if n := len(znodesOf(t, second, "/right")); n != 5001 {
		t.Errorf("%d znodes, want 5001", n)
	}
	must(t, <-waited)
}

// A client goes on with a state after its connection was lost, at the same server; at another one the state is lost.
func TestTree_Reconnects(t *testing.T) {
	e := zklitetest.Start(t, zklitetest.WithServers(3))
	c := connect(t, e.ConnectString())
	must(t, c.EnsurePath(t.Context(), "/app", client.Persistent))
	fill(t, c, "/app", 5000)
	n := 0
	tree, err := c.Tree(t.Context(), "/app")
	must(t, err)
	for _, err = range tree.Znodes(t.Context(), "/app") {
		if err != nil {
			break
		}
		if n++; n == 100 {
			for i := range 3 { // one after the other: the client goes to another server
				e.Stop(i)
				e.Restart(i)
			}
		}
	}
	if !errors.Is(err, client.ErrTreeLost) || n < 100 || n > 5000 {
		t.Errorf("after %d znodes error %v, want %v", n, err, client.ErrTreeLost)
	}
}
