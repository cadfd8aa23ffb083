package recipes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// A context of a grant that is over is over, too: work that begins with it must not be done once
// more. It used to be cancelled by a goroutine, and the first operation was quicker.
func TestGrant_Context_OfAGrantThatIsOver(t *testing.T) {
	k := newKit(t)
	c := k.connect()
	m := recipes.NewMutex(c, k.path("m"))
	_, _, err := c.Create(k.ctx, k.path("r"), nil, client.Persistent)
	k.must(err)
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
	k.must(g.Release(k.ctx))
	write(g, recipes.ErrReleased)
	g = k.lock(m)
	k.must(c.Delete(k.ctx, g.Path(), client.AnyVersion))
	receive(k, "the loss", g.Done())
	write(g, recipes.ErrDeleted)
	if _, stat, err := c.Get(k.ctx, k.path("r")); err != nil || stat.Version != 0 {
		t.Errorf("%d writes were done (%v), want none", stat.Version, err)
	}
	k.wantErr(g.Release(k.ctx), recipes.ErrLost)
	k.wantNoLeftovers()
}

// Release returns when its context ends, and continues in the background.
func TestGrant_Release_ContextEnds(t *testing.T) {
	k := newKit(t)
	c, tap := k.connectTapped()
	g := k.lock(recipes.NewMutex(c, k.path("m")))
	next := k.queue(recipes.NewMutex(k.connect(), k.path("m")), 2)
	tap.Block()
	ctx, cancel := context.WithCancel(k.ctx)
	released := start(func() (struct{}, error) { return struct{}{}, g.Release(ctx) })
	receive(k, "the end of the grant", g.Done())
	cancel()
	k.wantErr(receive(k, "the end of Release", released).err, context.Canceled)
	tap.Unblock()
	got := receive(k, "the next grant", next)
	k.must(got.err)
	k.must(c.Session().Err())
	k.must(got.v.Release(k.ctx))
	k.wantNoLeftovers()
}
