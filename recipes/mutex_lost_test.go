package recipes_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// The creation of the znode succeeds and its answer is lost: there is one znode,
// not a second one that nobody would ever give up.
func TestMutex_Lock_CreateReplyLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	k.no(c.EnsurePath(k.ctx, k.path("m"), client.Container))
	tap.LoseReply(proxy.OpCreate)
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
	tap.LoseReplyAndBlock(proxy.OpCreate)
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
	tap.LoseReply(proxy.OpDelete)
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
	wait.Until(k, "the unlucky one waits again, at the end", func() bool {
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
			*proxy.Proxy
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
