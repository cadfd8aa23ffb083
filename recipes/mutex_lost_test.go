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
// not a second one that would never be released.
func TestMutex_Lock_CreateReplyLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	k.must(c.EnsurePath(k.ctx, k.path("m"), client.Container))
	tap.LoseReply(proxy.OpCreate)
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	if tap.Lost() != 1 {
		t.Fatalf("%d replies were lost, want 1", tap.Lost())
	}
	if n := k.children(c, k.path("m")); n != 1 {
		t.Fatalf("there are %d znodes, want 1", n)
	}
	k.must(g.Release(k.ctx))
	if n := k.children(c, k.path("m")); n != 0 {
		t.Fatalf("there are %d znodes after the release, want 0", n)
	}
	k.wantNoLeftovers()
}

// The answer to the creation is lost together with the session: the znode belongs
// to a session of the past, and must not be taken for a position (CURATOR-696).
func TestMutex_Lock_CreateReplyLostWithSession(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped(quick)
	k.must(c.EnsurePath(k.ctx, k.path("m"), client.Container))
	old := c.Session()
	tap.LoseReplyAndBlock(proxy.OpCreate)
	waiting := start(func() (*recipes.Grant, error) {
		return recipes.NewMutex(c, k.path("m")).Lock(k.ctx)
	})
	receive(k, "the end of the session", old.Done())
	if tap.Lost() != 1 {
		t.Fatalf("%d replies were lost, want 1", tap.Lost())
	}
	tap.Unblock()
	got := receive(k, "the grant", waiting)
	k.must(got.err)
	if got.v.Session().ID == old.ID || got.v.Err() != nil {
		t.Fatalf("granted in session %v (%v), want another than the lost %v", got.v.Session().ID, got.v.Err(), old.ID)
	}
	_, stat, err := c.Get(k.ctx, got.v.Path())
	k.must(err)
	if stat.EphemeralOwner != got.v.Session().ID {
		t.Errorf("the znode belongs to %v, want to the grant's session %v", stat.EphemeralOwner, got.v.Session().ID)
	}
	k.must(got.v.Release(k.ctx))
	k.waitChildren(c, k.path("m"), 0)
}

// The release's answer is lost: the mutex is free all the same.
func TestMutex_Release_ReplyLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	m := recipes.NewMutex(c, k.path("m"))
	g := k.lock(m)
	tap.LoseReply(proxy.OpDelete)
	k.must(g.Release(k.ctx))
	if tap.Lost() != 1 {
		t.Fatalf("%d replies were lost, want 1", tap.Lost())
	}
	k.must(k.lock(m).Release(k.ctx))
	k.wantNoLeftovers()
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
		k.must(err)
		return len(list) == 3 && string(list[2].Data) == "first"
	})
	k.must(holder.Release(k.ctx))
	next := receive(k, "the second waiter's grant", second)
	k.must(next.err)
	if len(first) != 0 {
		t.Fatal("the first waiter has the mutex, too; want the second alone")
	}
	k.must(next.v.Release(k.ctx))
	last := receive(k, "the first waiter's grant", first)
	k.must(last.err)
	k.must(last.v.Release(k.ctx))
	k.wantNoLeftovers()
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
	receive(k, "the loss", g.Done())
	k.wantErr(g.Err(), recipes.ErrLost)
	k.wantSessionEnd(g.Err())
	receive(k, "the end of the context", bound.Done())
	if _, _, err := c.Get(bound, k.root); err == nil {
		t.Error("an operation of the lost grant succeeded in the next session, want an error")
	}
	got := receive(k, "the next grant", next)
	k.must(got.err)
	if got.v.FencingToken() <= g.FencingToken() {
		t.Errorf("token %v, want more than the one before, %v", got.v.FencingToken(), g.FencingToken())
	}
	k.wantErr(g.Release(k.ctx), recipes.ErrLost)
	k.must(got.v.Err())
	k.must(got.v.Release(k.ctx))
	k.wantNoLeftovers()
}

// A holder that is cut off from all servers knows that the grant is lost before
// another client has it.
func TestMutex_Lock_PartitionedHolderLosesFirst(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped(quick)
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	next := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 2)
	tap.Block()
	got := receive(k, "the next grant", next)
	lost := g.Err()
	k.must(got.err)
	k.wantErr(lost, recipes.ErrLost)
	k.wantErr(g.Release(k.ctx), recipes.ErrLost)
	tap.Unblock()
	k.must(got.v.Release(k.ctx))
	k.wantNoLeftovers()
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
	k.must(holder.Err())
	if len(next) != 0 {
		t.Fatal("another has the mutex, too; want the holder alone")
	}
	k.must(holder.Release(k.ctx))
	got := receive(k, "the grant", next)
	k.must(got.err)
	k.must(got.v.Release(k.ctx))
	k.wantNoLeftovers()
}

func TestMutex_Lock_LossOnSuspension(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	lenient := k.lock(recipes.NewMutex(c, k.path("a")))
	strict := k.lock(recipes.NewMutex(c, k.path("b"), recipes.WithLossOnSuspension()))
	tap.Block()
	receive(k, "the loss", strict.Done())
	k.wantErr(strict.Err(), recipes.ErrSuspended)
	k.must(lenient.Err())
	tap.Unblock()
	k.wantErr(strict.Release(k.ctx), recipes.ErrLost)
	k.must(lenient.Release(k.ctx))
	k.must(k.lock(recipes.NewMutex(k.connect(), k.path("b"))).Release(k.ctx))
	k.wantNoLeftovers()
}

func TestMutex_Lock_ZnodeDeletedByOthers(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	k.must(k.connect().Delete(k.ctx, g.Path(), client.AnyVersion))
	receive(k, "the loss", g.Done())
	k.wantErr(g.Err(), recipes.ErrDeleted)
	k.wantErr(g.Release(k.ctx), recipes.ErrLost)
	k.wantNoLeftovers()
}
