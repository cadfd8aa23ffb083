package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// exampleServer is a zk-lite server in this process.
var exampleServer string // set once by TestMain

// exampleAtMost bounds how long an example may take.
const exampleAtMost = 2 * time.Minute

func TestMain(m *testing.M) {
	os.Exit(zklitetest.Main(m, func(e *zklitetest.Ensemble) { exampleServer = e.ConnectString() }))
}

// servers returns a connect string with a chroot of its own.
func servers() string {
	ctx, cancel := exampleContext()
	defer cancel()
	c, err := client.Connect(ctx, exampleServer)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	root, _, err := c.Create(ctx, "/example-", nil, client.PersistentSequential)
	if err != nil {
		log.Panic(err)
	}
	return exampleServer + root
}

// exampleContext keeps an example from hanging.
func exampleContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), exampleAtMost)
}

func ExampleConnect() {
	ctx, cancel := exampleContext()
	defer cancel()
	// Such as "zk1:2181,zk2:2181,zk3:2181/app": with /app, all paths are below it.
	c, err := client.Connect(ctx, servers(), client.WithSessionTimeout(10*time.Second))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()

	states := c.States() // what happens to the session from now on
	defer states.Cancel()
	fmt.Println(c.State().State, c.Session().Timeout)

	_, _, err = c.Get(ctx, "/no/such/znode")
	fmt.Println(errors.Is(err, client.ErrNoNode))
	fmt.Println(err)
	// Output:
	// connected 10s
	// true
	// getData /no/such/znode: znode does not exist
}

func ExampleClient_Create() {
	ctx, cancel := exampleContext()
	defer cancel()
	c, err := client.Connect(ctx, servers())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()

	path, stat, err := c.Create(ctx, "/create", []byte("v1"), client.Persistent)
	fmt.Println(path, stat.Version, err)

	// An ephemeral goes with the session; the number is from the server.
	path, _, err = c.Create(ctx, "/create/member-", nil, client.EphemeralSequential)
	fmt.Println(path, err)

	// With the version that was read, the set overwrites no one's change.
	stat, err = c.Set(ctx, "/create", []byte("v2"), stat.Version)
	fmt.Println(stat.Version, err)
	_, err = c.Set(ctx, "/create", []byte("v3"), 0)
	fmt.Println(errors.Is(err, client.ErrBadVersion))
	// Output:
	// /create 0 <nil>
	// /create/member-0000000000 <nil>
	// 1 <nil>
	// true
}

func ExampleClient_GetW() {
	ctx, cancel := exampleContext()
	defer cancel()
	c, err := client.Connect(ctx, servers())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	if _, _, err := c.Create(ctx, "/watched", []byte("v1"), client.Persistent); err != nil {
		log.Panic(err)
	}

	data, _, watch, err := c.GetW(ctx, "/watched")
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("%s\n", data)

	// A client changes it, here the same one.
	if _, err := c.Set(ctx, "/watched", []byte("v2"), client.AnyVersion); err != nil {
		log.Panic(err)
	}

	event := <-watch.C() // one, then the channel is closed
	fmt.Println(event.Type, event.Path)
	if data, _, err = c.Get(ctx, "/watched"); err != nil {
		log.Panic(err)
	}
	fmt.Printf("%s\n", data)
	// Output:
	// v1
	// NodeDataChanged /watched
	// v2
}

func ExampleClient_Multi() {
	ctx, cancel := exampleContext()
	defer cancel()
	c, err := client.Connect(ctx, servers())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()

	m := c.Multi()
	m.Create("/account", []byte("100"), client.Persistent)
	entry := m.Create("/account/entry-", nil, client.PersistentSequential)
	balance := m.Set("/account", []byte("90"), 0)
	if err := m.Commit(ctx); err != nil {
		log.Panic(err)
	}
	fmt.Println(entry.Path, balance.Stat.Version)

	// All or nothing: the version is no longer 0.
	m = c.Multi()
	m.Create("/account/entry-", nil, client.PersistentSequential)
	m.Set("/account", []byte("80"), 0)
	err = m.Commit(ctx)
	var failed *client.MultiError
	if errors.As(err, &failed) {
		fmt.Println(failed.Index, failed.Path, errors.Is(err, client.ErrBadVersion))
	}
	entries, _, err := c.Children(ctx, "/account")
	fmt.Println(entries, err)
	// Output:
	// /account/entry-0000000000 1
	// 1 /account true
	// [entry-0000000000] <nil>
}

func ExampleCache() {
	ctx, cancel := exampleContext()
	defer cancel()
	c, err := client.Connect(ctx, servers())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	if err := c.EnsurePath(ctx, "/settings/log", client.Persistent); err != nil {
		log.Panic(err)
	}

	cache, err := client.NewCache(ctx, c, "/settings")
	if err != nil {
		log.Panic(err)
	}
	defer cache.Close()

	stat, err := c.Set(ctx, "/settings/log", []byte("debug"), client.AnyVersion)
	if err != nil {
		log.Panic(err)
	}
	// The cache follows by itself; who must see a certain write waits for it.
	if err := cache.WaitZxid(ctx, stat.Mzxid); err != nil {
		log.Panic(err)
	}
	for node := range cache.All() {
		fmt.Printf("%s %q\n", node.Path, node.Data)
	}
	// Output:
	// /settings ""
	// /settings/log "debug"
}

func ExampleAsync_Set() {
	ctx, cancel := exampleContext()
	defer cancel()
	c, err := client.Connect(ctx, servers())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	if _, _, err := c.Create(ctx, "/async", nil, client.Persistent); err != nil {
		log.Panic(err)
	}

	// All are on their way at once, and take effect in this order.
	first := c.Async().Set(ctx, "/async", []byte("1"), client.AnyVersion)
	second := c.Async().Set(ctx, "/async", []byte("2"), client.AnyVersion)
	read := c.Async().Get(ctx, "/async")

	reply, err := read.Wait(ctx)
	fmt.Printf("%s %v\n", reply.Data, err)
	fmt.Println(first.Zxid() < second.Zxid())
	// Output:
	// 2 <nil>
	// true
}

func ExampleDigestACL() {
	ctx, cancel := exampleContext()
	defer cancel()
	alice, err := client.Connect(ctx, servers(), client.WithAuth("digest", []byte("alice:secret")))
	if err != nil {
		log.Panic(err)
	}
	defer alice.Close()

	acl, err := client.DigestACL(client.PermAll, "alice", "secret")
	if err != nil {
		log.Panic(err)
	}
	acl = append(acl, client.ReadACL()...) // and everyone may read
	_, _, err = alice.Create(ctx, "/alice", []byte("hello"), client.Persistent, acl...)
	fmt.Println(err)
	list, _, err := alice.GetACL(ctx, "/alice")
	for _, entry := range list {
		fmt.Println(entry.Perms, entry.ID.Scheme, entry.ID.ID)
	}
	fmt.Println(err)
	// Output:
	// <nil>
	// cdrwa digest alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E=
	// r world anyone
	// <nil>
}
