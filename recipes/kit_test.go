package recipes_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// shared is the server that most tests use, each below a path of its own.
var shared *zktest.Server // set once by TestMain

func TestMain(m *testing.M) {
	os.Exit(zktest.Main(m, func(s *zktest.Server) { shared = s }))
}

// kit gives a test a path of its own on the shared server, and clients.
type kit struct {
	*testing.T
	ctx  context.Context
	root string
}

func newKit(t *testing.T) *kit {
	t.Helper()
	k := &kit{T: t, ctx: zktest.Context(t)}
	name := "/" + strings.ReplaceAll(t.Name(), "/", "-") + "-"
	root, _, err := k.connect().Create(k.ctx, name, nil, client.PersistentSequential)
	k.must(err)
	k.root = root
	return k
}

func (k *kit) path(name string) string { return k.root + "/" + name }

func (k *kit) connect(opts ...client.Option) *client.Client {
	k.Helper()
	return zktest.Connect(k, shared.Address, opts...)
}

func (k *kit) connectTapped(opts ...client.Option) (*client.Client, *proxy.Proxy) {
	k.Helper()
	return zktest.ConnectTapped(k, shared.Address, opts...)
}

// wantNoLeftovers waits until the recipes have neither goroutines nor watches, while
// the clients are still connected.
func (k *kit) wantNoLeftovers() {
	k.Helper()
	zktest.NoGoroutines(k)
	shared.NoWatches(k)
}

func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func (k *kit) wantErr(err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Fatalf("the error is %v, want %v", err, want)
	}
}

// wantSessionEnd checks the reason for a loss by the end of the session. The deletion of
// the znode may be reported first.
func (k *kit) wantSessionEnd(err error) {
	k.Helper()
	if !errors.Is(err, recipes.ErrDeleted) {
		k.wantErr(err, client.ErrSessionExpired)
	}
}

// receive receives what must come.
func receive[T any](k *kit, what string, c <-chan T) T {
	k.Helper()
	select {
	case v := <-c:
		return v
	case <-k.ctx.Done():
		k.Fatalf("waiting for %s: %v", what, k.ctx.Err())
		panic("unreachable")
	}
}

// outcome is the result of a call in another goroutine.
type outcome[T any] struct {
	v   T
	err error
}

// start makes a call in another goroutine.
func start[T any](call func() (T, error)) <-chan outcome[T] {
	c := make(chan outcome[T], 1)
	go func() {
		v, err := call()
		c <- outcome[T]{v, err}
	}()
	return c
}

// children counts the children of a znode, 0 if there is none.
func (k *kit) children(c *client.Client, path string) int {
	k.Helper()
	k.must(c.Sync(k.ctx, path))
	names, _, err := c.Children(k.ctx, path)
	if err != nil && !errors.Is(err, client.ErrNoNode) {
		k.Fatal(err)
	}
	return len(names)
}

// waitChildren waits until a znode has n children.
func (k *kit) waitChildren(c *client.Client, path string, n int) {
	k.Helper()
	wait.Until(k, path+" has the wanted number of children",
		func() bool { return k.children(c, path) == n })
}

// lock locks a mutex and must get it.
func (k *kit) lock(m *recipes.Mutex) *recipes.Grant {
	k.Helper()
	g, err := m.Lock(k.ctx)
	k.must(err)
	return g
}

// queue starts a Lock and waits until it is the nth in the queue.
func (k *kit) queue(m *recipes.Mutex, n int) <-chan outcome[*recipes.Grant] {
	k.Helper()
	c := start(func() (*recipes.Grant, error) { return m.Lock(k.ctx) })
	wait.Until(k, "the waiter is in the queue", func() bool {
		list, err := m.Participants(k.ctx)
		k.must(err)
		return len(list) == n
	})
	return c
}
