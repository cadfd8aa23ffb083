package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// quick is a session timeout for tests that wait for one to pass. It is longer than a loaded machine keeps a client from
// its pings: the session must live until the test cuts the client off.
var quick = client.WithSessionTimeout(4 * time.Second)

// Waiters get the mutex in the order in which they asked, each with a higher
// token.
func TestMutex_Lock_GrantedInOrder(t *testing.T) {
	k := newKit(t)
	holder := k.lock(recipes.NewMutex(k.connect(), k.path("m")))
	token := holder.FencingToken()
	var waiters []<-chan outcome[*recipes.Grant]
	for i := range 6 {
		m := recipes.NewMutex(k.connect(), k.path("m"), recipes.WithData(fmt.Append(nil, i)))
		waiters = append(waiters, k.queue(m, i+2))
	}
	for i, w := range waiters {
		for j, later := range waiters[i:] {
			if len(later) != 0 {
				t.Fatalf("waiter %d has the mutex while another holds it, want it to wait", i+j)
			}
		}
		k.must(holder.Release(k.ctx))
		got := receive(k, "the next grant", w)
		k.must(got.err)
		holder = got.v
		if holder.FencingToken() <= token {
			t.Errorf("waiter %d has token %v, want more than the one before, %v", i, holder.FencingToken(), token)
		}
		token = holder.FencingToken()
	}
	k.must(holder.Release(k.ctx))
	k.waitChildren(k.connect(), k.path("m"), 0)
	k.wantNoLeftovers()
}

// A release wakes the next waiter, and no other, whatever the length of the queue:
// one event for it, and one for the holder whose znode goes.
func TestMutex_Release_WakesOneWaiter(t *testing.T) {
	for _, length := range []int{1, 4, 24} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			k := newKit(t)
			c, tap := k.connectTapped()
			taps := []*proxy.Proxy{tap}
			holder := k.lock(recipes.NewMutex(c, k.path("m")))
			var waiters []<-chan outcome[*recipes.Grant]
			for i := range length {
				c, tap := k.connectTapped()
				taps = append(taps, tap)
				waiters = append(waiters, k.queue(recipes.NewMutex(c, k.path("m")), i+2))
			}
			wait.Until(k, "everybody watches", func() bool {
				return shared.Watches(k.path("m")) == 1+2*length
			})
			for i, w := range waiters {
				k.must(holder.Release(k.ctx))
				got := receive(k, "the next grant", w)
				k.must(got.err)
				holder = got.v
				for j, tap := range taps {
					want := 0
					switch {
					case j <= i && j > 0:
						want = 2 // became holder, and released
					case j == 0 || j == i+1:
						want = 1
					}
					wait.Until(k, "the events have come", func() bool { return tap.Events() >= want })
					if n := tap.Events(); n != want {
						t.Errorf("after release %d client %d has %d events, want %d", i, j, n, want)
					}
				}
			}
			k.must(holder.Release(k.ctx))
			k.wantNoLeftovers()
		})
	}
}

// The one in front goes away after the list was read and before the watch is left.
func TestMutex_Lock_PredecessorGoneBeforeWatch(t *testing.T) {
	k := newKit(t)
	holder := k.lock(recipes.NewMutex(k.connect(), k.path("m")))
	c, tap := k.connectTapped()
	listed, reads := false, 0
	released := make(chan error, 1)
	tap.Before(func(op proxy.Op) {
		switch {
		case op == proxy.OpChildren:
			listed = true
		case op == proxy.OpGetData && listed:
			if reads++; reads == 2 { // the first is of the own znode
				released <- holder.Release(k.ctx)
			}
		}
	})
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	k.must(receive(k, "the release", released))
	tap.Before(nil)
	k.must(g.Release(k.ctx))
	k.wantNoLeftovers()
}

// A waiter in the middle gives up. No one gets the mutex because of that, and
// the next one waits for the holder instead.
func TestMutex_Lock_WaiterInTheMiddleGivesUp(t *testing.T) {
	k := newKit(t)
	holder := k.lock(recipes.NewMutex(k.connect(), k.path("m")))
	m := recipes.NewMutex(k.connect(), k.path("m"))
	ctx, cancel := context.WithCancel(k.ctx)
	middle := start(func() (*recipes.Grant, error) { return m.Lock(ctx) })
	k.waitChildren(k.connect(), k.path("m"), 2)
	last := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 3)
	wait.Until(k, "all watch", func() bool { return shared.Watches(k.path("m")) == 5 })
	cancel()
	k.wantErr(receive(k, "the end of the wait", middle).err, context.Canceled)
	wait.Until(k, "the last waits for the holder", func() bool {
		return shared.Watches(k.path("m")) == 3
	})
	if len(last) != 0 {
		t.Fatal("the last waiter has the mutex, too; want it to wait")
	}
	k.must(holder.Release(k.ctx))
	got := receive(k, "the grant", last)
	k.must(got.err)
	k.must(got.v.Release(k.ctx))
	k.wantNoLeftovers()
}

func TestMutex_TryLock_ErrNotAcquired(t *testing.T) {
	k := newKit(t)
	a := recipes.NewMutex(k.connect(), k.path("m"))
	b := recipes.NewMutex(k.connect(), k.path("m"))
	g, err := a.TryLock(k.ctx)
	k.must(err)
	_, err = b.TryLock(k.ctx)
	k.wantErr(err, recipes.ErrNotAcquired)
	if n := k.children(k.connect(), k.path("m")); n != 1 {
		t.Fatalf("there are %d znodes, want the holder's", n)
	}
	k.must(g.Release(k.ctx))
	g, err = b.TryLock(k.ctx)
	k.must(err)
	k.must(g.Release(k.ctx))
	k.wantErr(g.Err(), recipes.ErrReleased)
	k.must(g.Release(k.ctx)) // again
	k.wantNoLeftovers()
}

func TestMutex_Lock_Reentrant(t *testing.T) {
	k := newKit(t)
	m := recipes.NewMutex(k.connect(), k.path("m"), recipes.WithReentrance())
	outer := k.lock(m)
	ctx, cancel := outer.Context(k.ctx)
	defer cancel()
	inner, err := m.Lock(ctx)
	k.must(err)
	if inner.FencingToken() != outer.FencingToken() {
		t.Errorf("the inner grant has token %v, want the outer's, %v", inner.FencingToken(), outer.FencingToken())
	}
	_, err = m.TryLock(k.ctx) // not with the grant's context
	k.wantErr(err, recipes.ErrNotAcquired)
	k.must(outer.Release(k.ctx))
	k.must(inner.Err())
	_, err = m.TryLock(k.ctx)
	k.wantErr(err, recipes.ErrNotAcquired)
	k.must(inner.Release(k.ctx))
	k.must(k.lock(m).Release(k.ctx))
	k.wantNoLeftovers()
}

func TestMutex_Revoke_HolderIsAsked(t *testing.T) {
	k := newKit(t)
	m := recipes.NewMutex(k.connect(), k.path("m"))
	k.wantErr(m.Revoke(k.ctx), recipes.ErrNotHeld)
	g := k.lock(m)
	other := recipes.NewMutex(k.connect(), k.path("m"))
	k.must(other.Revoke(k.ctx))
	receive(k, "the wish", g.Revoked())
	k.must(g.Err()) // it is a wish only
	data, _, err := k.connect().Get(k.ctx, g.Path())
	k.must(err)
	if string(data) != "__REVOKE__" {
		t.Errorf("the data is %q, want Curator's __REVOKE__", data)
	}
	k.must(other.Revoke(k.ctx)) // twice is no error, and the grant stays
	k.must(g.Release(k.ctx))
	k.wantNoLeftovers()
}

// Closing a client ends everything that its recipes do.
func TestMutex_Lock_ClientClosed(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	waiting := k.queue(recipes.NewMutex(c, k.path("m")), 2)
	k.must(c.Close())
	receive(k, "the loss", g.Done())
	k.wantErr(g.Err(), client.ErrClosed)
	k.wantErr(receive(k, "the end of the wait", waiting).err, client.ErrClosed)
	k.wantNoLeftovers()
}

// The znodes are Curator's: the parent is a container, the name has a GUID.
func TestMutex_Lock_CuratorLayout(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	g := k.lock(recipes.NewMutex(c, k.path("deep/m"), recipes.WithData([]byte("me"))))
	name, ok := strings.CutPrefix(g.Path(), k.path("deep/m/_c_"))
	if !ok || len(name) != 36+len("-lock-0000000000") || !strings.HasSuffix(name, "-lock-0000000000") {
		t.Errorf("the path is %s, want deep/m/_c_, a GUID and -lock-0000000000", g.Path())
	}
	if n := tap.Sent(proxy.OpContain); n != 3 { // deep/m, in vain; deep; deep/m
		t.Errorf("%d containers were asked for, want 3", n)
	}
	k.must(g.Release(k.ctx))
}

// A parent that may not be written is an error that names the path.
func TestMutex_Lock_NoAuth(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	_, _, err := c.Create(k.ctx, k.path("m"), nil, client.Persistent, client.ReadACL()...)
	k.must(err)
	_, err = recipes.NewMutex(c, k.path("m")).Lock(k.ctx)
	k.wantErr(err, client.ErrNoAuth)
	var op *client.OpError
	if !errors.As(err, &op) || !strings.HasPrefix(op.Path, k.path("m")) {
		t.Errorf("the error does not name the path: %v", err)
	}
	k.wantNoLeftovers()
}
