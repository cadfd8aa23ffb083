package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// quick is a session timeout for tests that wait for one to pass.
var quick = client.WithSessionTimeout(time.Second)

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
				t.Fatalf("waiter %d does not wait while another has the mutex", i+j)
			}
		}
		k.no(holder.Release(k.ctx))
		got := recv(k, "the next grant", w)
		k.no(got.err)
		holder = got.v
		if holder.FencingToken() <= token {
			t.Errorf("waiter %d has token %v after %v", i, holder.FencingToken(), token)
		}
		token = holder.FencingToken()
	}
	k.no(holder.Release(k.ctx))
	k.waitChildren(k.connect(), k.path("m"), 0)
	k.nothingLeft()
}

// A release wakes the next waiter, and no other, whatever the length of the queue:
// one event for it, and one for the holder whose znode goes.
func TestMutex_Release_WakesOneWaiter(t *testing.T) {
	for _, length := range []int{1, 4, 24} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			k := newKit(t)
			c, tap := k.connectTapped()
			taps := []*zktest.Tap{tap}
			holder := k.lock(recipes.NewMutex(c, k.path("m")))
			var waiters []<-chan outcome[*recipes.Grant]
			for i := range length {
				c, tap := k.connectTapped()
				taps = append(taps, tap)
				waiters = append(waiters, k.queue(recipes.NewMutex(c, k.path("m")), i+2))
			}
			zktest.WaitFor(k, "everybody watches", func() bool {
				return shared.Watches(k.path("m")) == 1+2*length
			})
			for i, w := range waiters {
				k.no(holder.Release(k.ctx))
				got := recv(k, "the next grant", w)
				k.no(got.err)
				holder = got.v
				for j, tap := range taps {
					want := 0
					switch {
					case j <= i && j > 0:
						want = 2 // became holder, and released
					case j == 0 || j == i+1:
						want = 1
					}
					zktest.WaitFor(k, "the events have come", func() bool { return tap.Events() >= want })
					if n := tap.Events(); n != want {
						t.Errorf("after release %d client %d has %d events, want %d", i, j, n, want)
					}
				}
			}
			k.no(holder.Release(k.ctx))
			k.nothingLeft()
		})
	}
}

// The creation of the znode succeeds and its answer is lost: there is one znode,
// not a second one that nobody would ever give up.
func TestMutex_Lock_CreateReplyLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	k.no(c.EnsurePath(k.ctx, k.path("m"), client.Container))
	tap.LoseReply(zktest.OpCreate)
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	if tap.Lost() != 1 {
		t.Fatalf("%d replies were lost, want 1", tap.Lost())
	}
	if n := k.children(c, k.path("m")); n != 1 {
		t.Fatalf("there are %d znodes, want 1", n)
	}
	k.no(g.Release(k.ctx))
	if n := k.children(c, k.path("m")); n != 0 {
		t.Fatalf("there are %d znodes after the release, want 0", n)
	}
	k.nothingLeft()
}

// The answer to the creation is lost together with the session: the znode belongs
// to a session of the past, and must not be taken for a position (CURATOR-696).
func TestMutex_Lock_CreateReplyLostWithSession(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped(quick)
	k.no(c.EnsurePath(k.ctx, k.path("m"), client.Container))
	old := c.Session()
	tap.LoseReplyAndBlock(zktest.OpCreate)
	waiting := start(func() (*recipes.Grant, error) {
		return recipes.NewMutex(c, k.path("m")).Lock(k.ctx)
	})
	recv(k, "the end of the session", old.Done())
	if tap.Lost() != 1 {
		t.Fatalf("%d replies were lost, want 1", tap.Lost())
	}
	tap.Unblock()
	got := recv(k, "the grant", waiting)
	k.no(got.err)
	if got.v.Session().ID == old.ID || got.v.Err() != nil {
		t.Fatalf("granted in session %v (%v), the lost one is %v", got.v.Session().ID, got.v.Err(), old.ID)
	}
	_, stat, err := c.Get(k.ctx, got.v.Path())
	k.no(err)
	if stat.EphemeralOwner != got.v.Session().ID {
		t.Errorf("the znode belongs to %v, the grant to %v", stat.EphemeralOwner, got.v.Session().ID)
	}
	k.no(got.v.Release(k.ctx))
	k.waitChildren(c, k.path("m"), 0)
}

// The release's answer is lost: the mutex is free all the same.
func TestMutex_Release_ReplyLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	m := recipes.NewMutex(c, k.path("m"))
	g := k.lock(m)
	tap.LoseReply(zktest.OpDelete)
	k.no(g.Release(k.ctx))
	if tap.Lost() != 1 {
		t.Fatalf("%d replies were lost, want 1", tap.Lost())
	}
	k.no(k.lock(m).Release(k.ctx))
	k.nothingLeft()
}

// A waiter whose session expires queues again, at the end.
func TestMutex_Lock_SessionExpiresWhileWaiting(t *testing.T) {
	k := newKit(t)
	holder := k.lock(recipes.NewMutex(k.connect(), k.path("m")))
	unlucky := k.connect()
	first := k.queue(recipes.NewMutex(unlucky, k.path("m"), recipes.WithData([]byte("first"))), 2)
	m := recipes.NewMutex(k.connect(), k.path("m"))
	second := k.queue(m, 3)
	zktest.Expire(k, unlucky, shared.Address)
	zktest.WaitFor(k, "the unlucky one waits again, at the end", func() bool {
		list, err := m.Participants(k.ctx)
		k.no(err)
		return len(list) == 3 && string(list[2].Data) == "first"
	})
	k.no(holder.Release(k.ctx))
	next := recv(k, "the second waiter's grant", second)
	k.no(next.err)
	if len(first) != 0 {
		t.Fatal("the first waiter has the mutex, too")
	}
	k.no(next.v.Release(k.ctx))
	last := recv(k, "the first waiter's grant", first)
	k.no(last.err)
	k.no(last.v.Release(k.ctx))
	k.nothingLeft()
}

// A holder whose session expires learns of it, and the next one has the mutex
// with a higher token.
func TestMutex_Lock_SessionExpiresWhileHolding(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	bound, cancel := g.Context(k.ctx)
	defer cancel()
	next := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 2)
	zktest.Expire(k, c, shared.Address)
	recv(k, "the loss", g.Done())
	k.is(g.Err(), recipes.ErrLost)
	k.sessionGone(g.Err())
	recv(k, "the end of the context", bound.Done())
	if _, _, err := c.Get(bound, k.root); err == nil {
		t.Error("an operation of the lost grant runs in the next session")
	}
	got := recv(k, "the next grant", next)
	k.no(got.err)
	if got.v.FencingToken() <= g.FencingToken() {
		t.Errorf("token %v after %v", got.v.FencingToken(), g.FencingToken())
	}
	k.is(g.Release(k.ctx), recipes.ErrLost)
	k.no(got.v.Err())
	k.no(got.v.Release(k.ctx))
	k.nothingLeft()
}

// A holder who is cut off from all servers knows that the grant is lost before
// anybody else has it.
func TestMutex_Lock_PartitionedHolderLosesFirst(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped(quick)
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	next := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 2)
	tap.Block()
	got := recv(k, "the next grant", next)
	lost := g.Err()
	k.no(got.err)
	k.is(lost, recipes.ErrLost)
	k.is(g.Release(k.ctx), recipes.ErrLost)
	tap.Unblock()
	k.no(got.v.Release(k.ctx))
	k.nothingLeft()
}

// The one in front goes away after the list was read and before the watch is left.
func TestMutex_Lock_PredecessorGoneBeforeWatch(t *testing.T) {
	k := newKit(t)
	holder := k.lock(recipes.NewMutex(k.connect(), k.path("m")))
	c, tap := k.connectTapped()
	listed, reads := false, 0
	released := make(chan error, 1)
	tap.Before(func(op zktest.Op) {
		switch {
		case op == zktest.OpChildren:
			listed = true
		case op == zktest.OpGetData && listed:
			if reads++; reads == 2 { // the first is of the own znode
				released <- holder.Release(k.ctx)
			}
		}
	})
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	k.no(recv(k, "the release", released))
	tap.Before(nil)
	k.no(g.Release(k.ctx))
	k.nothingLeft()
}

// A waiter in the middle gives up. Nobody has the mutex because of that, and the
// one behind it goes on to wait for the holder.
func TestMutex_Lock_WaiterInTheMiddleGivesUp(t *testing.T) {
	k := newKit(t)
	holder := k.lock(recipes.NewMutex(k.connect(), k.path("m")))
	m := recipes.NewMutex(k.connect(), k.path("m"))
	ctx, cancel := context.WithCancel(k.ctx)
	middle := start(func() (*recipes.Grant, error) { return m.Lock(ctx) })
	k.waitChildren(k.connect(), k.path("m"), 2)
	last := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 3)
	zktest.WaitFor(k, "all watch", func() bool { return shared.Watches(k.path("m")) == 5 })
	cancel()
	k.is(recv(k, "the end of the wait", middle).err, context.Canceled)
	zktest.WaitFor(k, "the last waits for the holder", func() bool {
		return shared.Watches(k.path("m")) == 3
	})
	if len(last) != 0 {
		t.Fatal("two have the mutex")
	}
	k.no(holder.Release(k.ctx))
	got := recv(k, "the grant", last)
	k.no(got.err)
	k.no(got.v.Release(k.ctx))
	k.nothingLeft()
}

// Connections break again and again under a holder and waiters: no znode and no
// grant is lost by that.
func TestMutex_Lock_ConnectionsBreak(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	holder := k.lock(recipes.NewMutex(c, k.path("m")))
	c2, tap2 := k.connectTapped()
	next := k.queue(recipes.NewMutex(c2, k.path("m")), 2)
	for range 5 {
		for _, x := range []struct {
			c *client.Client
			*zktest.Tap
		}{{c, tap}, {c2, tap2}} {
			states := x.c.States()
			<-states.C() // the current one
			x.Cut()
			for s := range states.C() {
				if s.State == client.StateReconnected {
					break
				}
			}
			states.Cancel()
		}
	}
	k.no(holder.Err())
	if len(next) != 0 {
		t.Fatal("two have the mutex")
	}
	k.no(holder.Release(k.ctx))
	got := recv(k, "the grant", next)
	k.no(got.err)
	k.no(got.v.Release(k.ctx))
	k.nothingLeft()
}

func TestMutex_TryLock_ErrNotAcquired(t *testing.T) {
	k := newKit(t)
	a := recipes.NewMutex(k.connect(), k.path("m"))
	b := recipes.NewMutex(k.connect(), k.path("m"))
	g, err := a.TryLock(k.ctx)
	k.no(err)
	_, err = b.TryLock(k.ctx)
	k.is(err, recipes.ErrNotAcquired)
	if n := k.children(k.connect(), k.path("m")); n != 1 {
		t.Fatalf("there are %d znodes, want the holder's", n)
	}
	k.no(g.Release(k.ctx))
	g, err = b.TryLock(k.ctx)
	k.no(err)
	k.no(g.Release(k.ctx))
	k.is(g.Err(), recipes.ErrReleased)
	k.no(g.Release(k.ctx)) // again
	k.nothingLeft()
}

func TestMutex_Lock_Reentrant(t *testing.T) {
	k := newKit(t)
	m := recipes.NewMutex(k.connect(), k.path("m"), recipes.WithReentrance())
	outer := k.lock(m)
	ctx, cancel := outer.Context(k.ctx)
	defer cancel()
	inner, err := m.Lock(ctx)
	k.no(err)
	if inner.FencingToken() != outer.FencingToken() {
		t.Errorf("the inner grant has token %v, the outer %v", inner.FencingToken(), outer.FencingToken())
	}
	_, err = m.TryLock(k.ctx) // not with the grant's context
	k.is(err, recipes.ErrNotAcquired)
	k.no(outer.Release(k.ctx))
	k.no(inner.Err())
	_, err = m.TryLock(k.ctx)
	k.is(err, recipes.ErrNotAcquired)
	k.no(inner.Release(k.ctx))
	k.no(k.lock(m).Release(k.ctx))
	k.nothingLeft()
}

func TestMutex_Revoke_HolderIsAsked(t *testing.T) {
	k := newKit(t)
	m := recipes.NewMutex(k.connect(), k.path("m"))
	k.is(m.Revoke(k.ctx), recipes.ErrNotHeld)
	g := k.lock(m)
	other := recipes.NewMutex(k.connect(), k.path("m"))
	k.no(other.Revoke(k.ctx))
	recv(k, "the wish", g.Revoked())
	k.no(g.Err()) // it is a wish only
	data, _, err := k.connect().Get(k.ctx, g.Path())
	k.no(err)
	if string(data) != "__REVOKE__" {
		t.Errorf("the data is %q, not Curator's", data)
	}
	k.no(other.Revoke(k.ctx)) // twice is no error, and the grant stays
	k.no(g.Release(k.ctx))
	k.nothingLeft()
}

func TestMutex_Lock_LossOnSuspension(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	lenient := k.lock(recipes.NewMutex(c, k.path("a")))
	strict := k.lock(recipes.NewMutex(c, k.path("b"), recipes.WithLossOnSuspension()))
	tap.Block()
	recv(k, "the loss", strict.Done())
	k.is(strict.Err(), recipes.ErrSuspended)
	k.no(lenient.Err())
	tap.Unblock()
	k.is(strict.Release(k.ctx), recipes.ErrLost)
	k.no(lenient.Release(k.ctx))
	k.no(k.lock(recipes.NewMutex(k.connect(), k.path("b"))).Release(k.ctx))
	k.nothingLeft()
}

func TestMutex_Lock_ZnodeDeletedByOthers(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	k.no(k.connect().Delete(k.ctx, g.Path(), client.AnyVersion))
	recv(k, "the loss", g.Done())
	k.is(g.Err(), recipes.ErrDeleted)
	k.is(g.Release(k.ctx), recipes.ErrLost)
	k.nothingLeft()
}

// A context of a grant that is over is over, too: work that begins with it must not be done once
// more. It used to be cancelled by a goroutine, and the first operation was quicker.
func TestGrant_Context_OfAGrantThatIsOver(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	m := recipes.NewMutex(c, k.path("m"))
	_, _, err := c.Create(k.ctx, k.path("r"), nil, client.Persistent)
	k.no(err)
	write := func(g *recipes.Grant, why error) {
		t.Helper()
		for range 50 {
			ctx, cancel := g.Context(k.ctx)
			_, err := c.Set(ctx, k.path("r"), []byte("late"), client.AnyVersion)
			cancel()
			if err == nil || errors.Is(err, client.ErrOutcomeUnknown) || !errors.Is(context.Cause(ctx), why) {
				t.Fatalf("a write under a grant that is over: %v, its context: %v", err, context.Cause(ctx))
			}
		}
	}
	g := k.lock(m)
	k.no(g.Release(k.ctx))
	write(g, recipes.ErrReleased)
	g = k.lock(m)
	k.no(c.Delete(k.ctx, g.Path(), client.AnyVersion))
	recv(k, "the loss", g.Done())
	write(g, recipes.ErrDeleted)
	if _, stat, err := c.Get(k.ctx, k.path("r")); err != nil || stat.Version != 0 {
		t.Errorf("%d writes were done, %v", stat.Version, err)
	}
	k.is(g.Release(k.ctx), recipes.ErrLost)
	k.nothingLeft()
}

// Release returns when its context ends, and goes on in the background.
func TestGrant_Release_ContextEnds(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	next := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 2)
	tap.Block()
	ctx, cancel := context.WithCancel(k.ctx)
	released := start(func() (struct{}, error) { return struct{}{}, g.Release(ctx) })
	recv(k, "the end of the grant", g.Done())
	cancel()
	k.is(recv(k, "the end of Release", released).err, context.Canceled)
	tap.Unblock()
	got := recv(k, "the next grant", next)
	k.no(got.err)
	k.no(c.Session().Err())
	k.no(got.v.Release(k.ctx))
	k.nothingLeft()
}

// Closing a client ends everything that its recipes do.
func TestMutex_Lock_ClientClosed(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	waiting := k.queue(recipes.NewMutex(c, k.path("m")), 2)
	k.no(c.Close())
	recv(k, "the loss", g.Done())
	k.is(g.Err(), client.ErrClosed)
	k.is(recv(k, "the end of the wait", waiting).err, client.ErrClosed)
	k.nothingLeft()
}

// The znodes are Curator's: the parent is a container, the name has a GUID.
func TestMutex_Lock_CuratorLayout(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	g := k.lock(recipes.NewMutex(c, k.path("deep/m"), recipes.WithData([]byte("me"))))
	name, ok := strings.CutPrefix(g.Path(), k.path("deep/m/_c_"))
	if !ok || len(name) != 36+len("-lock-0000000000") || !strings.HasSuffix(name, "-lock-0000000000") {
		t.Errorf("the path is %s", g.Path())
	}
	if n := tap.Sent(zktest.OpContain); n != 3 { // deep/m, in vain; deep; deep/m
		t.Errorf("%d containers were asked for, want 3", n)
	}
	k.no(g.Release(k.ctx))
}

// A parent that may not be written is an error that names the path.
func TestMutex_Lock_NoAuth(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	_, _, err := c.Create(k.ctx, k.path("m"), nil, client.Persistent, client.ReadACL()...)
	k.no(err)
	_, err = recipes.NewMutex(c, k.path("m")).Lock(k.ctx)
	k.is(err, client.ErrNoAuth)
	var op *client.OpError
	if !errors.As(err, &op) || !strings.HasPrefix(op.Path, k.path("m")) {
		t.Errorf("the error does not name the path: %v", err)
	}
	k.nothingLeft()
}
