package recipes_test

import (
	"context"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// do is start for a call without a result.
func do(call func() error) <-chan outcome[struct{}] {
	return start(func() (struct{}, error) { return struct{}{}, call() })
}

func TestBarrier_Wait_UntilRemoved(t *testing.T) {
	k := newKit(t)
	b := recipes.NewBarrier(k.connect(), k.path("deep/b"))
	k.must(b.Wait(k.ctx)) // not set
	k.must(b.Set(k.ctx))
	k.must(b.Set(k.ctx))
	var waiting []<-chan outcome[struct{}]
	unlucky, tap := k.connectTapped()
	for _, c := range []*client.Client{k.connect(), unlucky} {
		waiting = append(waiting, do(func() error {
			return recipes.NewBarrier(c, k.path("deep/b")).Wait(k.ctx)
		}))
	}
	wait.Until(k, "all watch", func() bool { return shared.Watches(k.root) == 2 })
	tap.Cut()
	zktest.Expire(k, unlucky, shared.Address) // waiting does not depend on a session
	ctx, cancel := context.WithCancel(k.ctx)
	cancelled := do(func() error { return b.Wait(ctx) })
	cancel()
	k.wantErr(receive(k, "the cancelled wait", cancelled).err, context.Canceled)
	for _, w := range waiting {
		if len(w) != 0 {
			t.Fatal("Wait has returned, want the barrier to hold")
		}
	}
	k.must(b.Remove(k.ctx))
	for _, w := range waiting {
		k.must(receive(k, "the end of the wait", w).err)
	}
	k.must(b.Remove(k.ctx))
	k.wantNoLeftovers()
}

func TestBarrier_SetRemove_RepliesLost(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	b := recipes.NewBarrier(c, k.path("b"))
	tap.LoseReply(proxy.OpCreate)
	k.must(b.Set(k.ctx))
	tap.LoseReply(proxy.OpDelete)
	k.must(b.Remove(k.ctx))
	if tap.Lost() != 2 {
		t.Errorf("%d replies were lost, want 2", tap.Lost())
	}
	k.must(b.Wait(k.ctx))
}

// enter starts an Enter and waits until n are there.
func (k *kit) enter(c *client.Client, size, n int) <-chan outcome[*recipes.Entered] {
	k.Helper()
	b := recipes.NewDoubleBarrier(c, k.path("b"), size)
	in := start(func() (*recipes.Entered, error) { return b.Enter(k.ctx) })
	if n > 0 {
		k.waitChildren(c, k.path("b"), n)
	}
	return in
}

// No one enters before all have come, and no one leaves before all leave; three
// times, since rounds follow each other.
func TestDoubleBarrier_EnterLeave_Together(t *testing.T) {
	k := newKit(t)
	clients := []*client.Client{k.connect(), k.connect(), k.connect()}
	for range 3 {
		entering := []<-chan outcome[*recipes.Entered]{
			k.enter(clients[0], 3, 1), k.enter(clients[1], 3, 2),
		}
		for _, e := range entering {
			if len(e) != 0 {
				t.Fatal("one has entered before all have come, want them to wait")
			}
		}
		entering = append(entering, k.enter(clients[2], 3, 0))
		var inside []*recipes.Entered
		for _, e := range entering {
			got := receive(k, "an entrance", e)
			k.must(got.err)
			inside = append(inside, got.v)
		}
		leaving := []<-chan outcome[struct{}]{
			do(func() error { return inside[0].Leave(k.ctx) }),
			do(func() error { return inside[1].Leave(k.ctx) }),
		}
		wait.Until(k, "one has left", func() bool { return k.children(clients[0], k.path("b")) < 4 })
		for _, l := range leaving {
			if len(l) != 0 {
				t.Fatal("one has left before all leave, want it to wait")
			}
		}
		k.must(inside[2].Leave(k.ctx))
		for _, l := range leaving {
			k.must(receive(k, "the others' exit", l).err)
		}
		if n := k.children(clients[0], k.path("b")); n != 0 {
			t.Fatalf("%d znodes are left, want none", n)
		}
	}
	k.wantNoLeftovers()
}

// Rounds follow each other as quickly as they can: those of the next do not hold up
// those of the last.
func TestDoubleBarrier_EnterLeave_RoundsDoNotMix(t *testing.T) {
	k := newKit(t)
	var all []<-chan outcome[struct{}]
	for range 3 {
		b := recipes.NewDoubleBarrier(k.connect(), k.path("b"), 3)
		all = append(all, do(func() error {
			for range 20 {
				in, err := b.Enter(k.ctx)
				if err != nil {
					return err
				}
				if err := in.Leave(k.ctx); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, a := range all {
		k.must(receive(k, "the rounds", a).err)
	}
	k.wantNoLeftovers()
}

// A crash of all has left ready. It does not open the next round.
func TestDoubleBarrier_Enter_StaleReady(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	k.must(c.EnsurePath(k.ctx, k.path("b/ready"), client.Persistent))
	first := k.enter(k.connect(), 2, 0)
	wait.Until(k, "ready is removed", func() bool {
		exists, _, err := c.Exists(k.ctx, k.path("b/ready"))
		k.must(err)
		return !exists
	})
	if len(first) != 0 {
		t.Fatal("the stale znode let one in, want it to wait")
	}
	second := k.enter(k.connect(), 2, 0)
	a, b := receive(k, "the first", first), receive(k, "the second", second)
	k.must(a.err)
	k.must(b.err)
	leaving := do(func() error { return a.v.Leave(k.ctx) })
	k.must(b.v.Leave(k.ctx))
	k.must(receive(k, "the exit", leaving).err)
	k.wantNoLeftovers()
}

// Sessions are lost while waiting to get in, and inside.
func TestDoubleBarrier_EnterLeave_SessionsExpire(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	first := k.enter(c, 2, 1)
	zktest.Expire(k, c, shared.Address)
	k.waitChildren(k.connect(), k.path("b"), 1) // it is there again
	c2 := k.connect()
	a, b := receiveBoth(k, first, k.enter(c2, 2, 0))
	zktest.Expire(k, c, shared.Address)
	k.must(b.Leave(k.ctx)) // the dead have left
	k.must(a.Leave(k.ctx))
	k.wantNoLeftovers()
}

// receiveBoth receives two results that must be no errors.
func receiveBoth[T any](k *kit, a, b <-chan outcome[T]) (T, T) {
	k.Helper()
	x, y := receive(k, "the first result", a), receive(k, "the second result", b)
	k.must(x.err)
	k.must(y.err)
	return x.v, y.v
}
