package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/recipes"
)

// startBarriers starts a worker that sets and removes a barrier, others that wait at it, and some that go through a
// double barrier together.
func (s *soak) startBarriers() {
	var epoch, waits, sets atomic.Int64 // epoch is odd while the barrier is set for certain
	for i, c := range s.clients {
		b := recipes.NewBarrier(c, path("barrier"))
		if i == 0 {
			s.work("barrier, set", func(context.Context) error {
				// With the context of the whole: at the end the barrier is removed.
				if err := again(s.ctx, func() error { return b.Set(s.ctx) }); err != nil {
					return err
				}
				epoch.Add(1)
				_, _, _ = c.Exists(s.stop, root) // takes a while
				epoch.Add(1)
				sets.Add(1)
				return again(s.ctx, func() error { return b.Remove(s.ctx) })
			})
			continue
		}
		s.work(fmt.Sprintf("barrier, wait %d", i), func(ctx context.Context) error {
			before := epoch.Load()
			err := b.Wait(ctx)
			if after := epoch.Load(); err == nil && before == after && before%2 == 1 {
				s.errorf("Barrier.Wait returned while the barrier was set all the time")
			}
			waits.Add(1)
			return err
		})
	}
	g := &gate{s: s, settled: make([]client.SessionID, clients), versions: make([]int, clients),
		entered: make([]int, clients), seen: make([]*lap, clients)}
	for i, c := range s.clients {
		b := recipes.NewDoubleBarrier(c, path("gate"), clients)
		g.settled[i] = c.SessionID()
		s.work(fmt.Sprintf("double barrier %d", i), func(ctx context.Context) error { return g.pass(ctx, i, b) })
	}
	s.atEnd(func() {
		s.Logf("barrier: set %d times, waited for %d times", sets.Load(), waits.Load())
		g.check()
	})
}

// again repeats do when a lost session has ended it.
func again(ctx context.Context, do func() error) error {
	for {
		if err := do(); err == nil || !passing(err) || ctx.Err() != nil {
			return err
		}
	}
}

// gate checks the double barrier. Between two passages of one, each of the others must have
// reached the entrance again, unless a session was lost meanwhile: a client that has lost its
// session has left, and may return into the same round.
type gate struct {
	s *soak

	mu       sync.Mutex         // protects the fields below
	settled  []client.SessionID // the session whose predecessors have no znode here
	versions []int              // how often settled has changed
	entered  []int              // how often each has come to the entrance
	seen     []*lap             // what each has seen before it left last
	checked  int
	skipped  int
}

// lap is what one sees at a moment.
type lap struct {
	entered, versions []int
}

func (g *gate) lookLocked() *lap {
	return &lap{append([]int(nil), g.entered...), append([]int(nil), g.versions...)}
}

func (g *gate) pass(ctx context.Context, i int, b *recipes.DoubleBarrier) error {
	if err := g.settle(ctx, i); err != nil {
		return err
	}
	g.mu.Lock()
	g.entered[i]++
	g.mu.Unlock()
	in, err := b.Enter(ctx)
	if err != nil {
		g.forget(i)
		return err
	}
	g.mu.Lock()
	g.compareLocked(i)
	g.seen[i] = g.lookLocked()
	g.mu.Unlock()
	// To the end, so that no one waits for us at the exit.
	err = in.Leave(g.s.ctx)
	if err != nil {
		g.forget(i)
	}
	return err
}

func (g *gate) forget(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[i] = nil
}

// compareLocked checks that all others have come to the entrance since i left.
func (g *gate) compareLocked(i int) {
	was := g.seen[i]
	if was == nil {
		return
	}
	for j, c := range g.s.clients {
		session := c.Session()
		if session.Err() != nil || session.ID != g.settled[j] || g.versions[j] != was.versions[j] {
			g.skipped++
			return
		}
	}
	g.checked++
	for j := range g.entered {
		if g.entered[j] <= was.entered[j] {
			g.s.errorf("double barrier: %d was let in, and %d has not come", i, j)
		}
	}
}

// settle waits until nothing is left here of the sessions that the client had before.
func (g *gate) settle(ctx context.Context, i int) error {
	c := g.s.clients[i]
	now := c.SessionID()
	g.mu.Lock()
	same := g.settled[i] == now && now != 0
	old := g.settled[i]
	g.mu.Unlock()
	if same {
		return nil
	}
	if err := c.Sync(ctx, root); err != nil {
		return err
	}
	names, _, err := c.Children(ctx, path("gate"))
	if err != nil && !errors.Is(err, client.ErrNoNode) {
		return err
	}
	for _, name := range names {
		exists, stat, err := c.Exists(ctx, path("gate/"+name))
		if err != nil {
			return err
		}
		if exists && stat.EphemeralOwner == old {
			return client.ErrSessionExpired // still there: again
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settled[i] = now
	g.versions[i]++
	return nil
}

func (g *gate) check() {
	if g.checked+g.skipped == 0 {
		g.s.errorf("double barrier: nobody has passed twice")
	}
	g.s.Logf("double barrier: %d passages checked, %d during losses of sessions", g.checked, g.skipped)
}
