//go:build zookeeper

package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/client/internal/zktest"
)

// These tests run against Apache ZooKeeper as Debian packages it. They fail
// where it is missing; -short leaves them out.

var ensemble struct {
	one *zktest.Ensemble
}

func zk(t testing.TB) *zktest.Ensemble {
	t.Helper()
	return zktest.Start(t, 1)
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func connect(t testing.TB, servers string, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(testContext(t), servers, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestQuick(t *testing.T) {
	e := zk(t)
	ctx := testContext(t)
	c := connect(t, e.ConnectString())
	p, st, err := c.Create(ctx, "/a", []byte("x"), client.Persistent)
	check(t, err)
	fmt.Println(p, st)
	d, st, w, err := c.GetW(ctx, "/a")
	check(t, err)
	fmt.Println(d, st)
	_, err = c.Set(ctx, "/a", []byte("y"), 0)
	check(t, err)
	fmt.Println(<-w.C())
	_, err = c.Set(ctx, "/a", []byte("y"), 0)
	fmt.Println(err, errors.Is(err, client.ErrBadVersion))
	_, _ = slices.Sort[[]int], strings.Cut
	_ = os.Args
	check(t, c.Close())
}
