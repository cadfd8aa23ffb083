//go:build interop

package interop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

// pair is what the tests with Curator have: a Java process and Go clients, on the same
// ensemble and, in each test, the same path.
type pair struct {
	*testing.T
	ctx  context.Context
	e    *cluster.Ensemble
	c    *client.Client
	peer *peer
	path string
}

// TestInterop_Curator makes Go recipes and Curator's compete for the same things.
func TestInterop_Curator(t *testing.T) {
	e := ensemble(t)
	ctx, cancel := context.WithTimeout(t.Context(), cluster.ProgramPatience)
	defer cancel()
	c, err := client.Connect(ctx, e.ConnectString(), client.WithSessionTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	java := startPeer(t, e)
	for _, test := range []struct {
		name string
		run  func(*pair)
	}{
		{"Mutex", (*pair).mutex},
		{"Mutex with a lock delay", (*pair).lockDelay},
		{"Mutex try and revoke", (*pair).revoke},
		{"LeaderSelector", (*pair).leaderSelector},
		{"RWMutex", (*pair).rwMutex},
		{"Semaphore", (*pair).semaphore},
		{"Election", (*pair).election},
		{"Barrier", (*pair).barrier},
		{"DoubleBarrier", (*pair).doubleBarrier},
		{"Group", (*pair).group},
		{"Counter", (*pair).counter},
		{"Config", (*pair).config},
		{"Queue", (*pair).queue},
		{"PriorityQueue", (*pair).priorityQueue},
		{"DelayQueue", (*pair).delayQueue},
		{"caches", (*pair).caches},
		{"servers die", (*pair).serversDie}, // the last, because the others wait less
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &pair{T: t, ctx: ctx, e: e, c: c, path: "/curator-" + strings.ReplaceAll(test.name, " ", "-")}
			was := java.t
			java.t = t
			defer func() { java.t = was }()
			p.peer = java
			test.run(p)
		})
	}
	atRest(t, e)
}

func (p *pair) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// result is the outcome of a call in another goroutine.
type result[T any] struct {
	v   T
	err error
}

// async makes a call in another goroutine.
func async[T any](call func() (T, error)) <-chan result[T] {
	c := make(chan result[T], 1)
	go func() {
		v, err := call()
		c <- result[T]{v, err}
	}()
	return c
}

// await waits for the end of such a call.
func await[T any](p *pair, c <-chan result[T]) T {
	p.Helper()
	select {
	case r := <-c:
		p.must(r.err)
		return r.v
	case <-p.ctx.Done():
		p.Fatal(p.ctx.Err())
		panic("unreachable")
	}
}

// children waits until a znode has n children.
func (p *pair) children(path string, n int) {
	p.Helper()
	wait.Succeeds(p, fmt.Sprintf("%s has %d children", path, n), func() error {
		p.must(p.c.Sync(p.ctx, path))
		names, _, err := p.c.Children(p.ctx, path)
		if err != nil && !errors.Is(err, client.ErrNoNode) || len(names) != n {
			return fmt.Errorf("it has %v, %w", names, err)
		}
		return nil
	})
}

// pending fails the test if a call has ended.
func pending[T any](p *pair, c <-chan result[T]) {
	p.Helper()
	if len(c) > 0 {
		p.Fatalf("got %+v, and it is not its turn", <-c)
	}
}

// Go, Curator, Go, Curator wait in one queue, and get the lock in this order.
func (p *pair) mutex() {
	m := recipes.NewMutex(p.c, p.path)
	first, err := m.Lock(p.ctx)
	p.must(err)
	second := p.peer.begin("mutex", p.path)
	p.children(p.path, 2)
	third := async(func() (*recipes.Grant, error) { return m.Lock(p.ctx) })
	p.children(p.path, 3)
	fourth := p.peer.begin("mutex", p.path)
	p.children(p.path, 4)
	p.peer.begin("participants", p.path).expect("4")
	second.silent()
	p.must(first.Release(p.ctx))
	second.expect("held")
	pending(p, third)
	fourth.silent()
	second.release()
	g := await(p, third)
	if g.FencingToken() <= first.FencingToken() {
		p.Errorf("token %d after %d", g.FencingToken(), first.FencingToken())
	}
	fourth.silent()
	p.must(g.Release(p.ctx))
	fourth.expect("held")
	fourth.release()
	p.children(p.path, 0)
}

// The mark of a lock delay does not disturb Curator, which does not wait for it.
func (p *pair) lockDelay() {
	lost, err := recipes.NewMutex(p.c, p.path, recipes.WithLockDelay(time.Hour)).Lock(p.ctx)
	p.must(err)
	p.children(p.path, 2) // with the mark
	first := p.peer.begin("mutex", p.path)
	p.children(p.path, 3)
	second := p.peer.begin("mutex", p.path)
	p.children(p.path, 4)
	first.silent()
	p.must(p.c.Delete(p.ctx, lost.Path(), client.AnyVersion)) // as the end of its session does
	first.expect("held")
	second.silent()
	first.release()
	second.expect("held")
	second.release()
	p.must(p.c.Delete(p.ctx, p.path+"/lock-delay", client.AnyVersion))
	p.children(p.path, 0)
}

// Neither gets what the other has, and each understands the other's wish.
func (p *pair) revoke() {
	m := recipes.NewMutex(p.c, p.path)
	g, err := m.Lock(p.ctx)
	p.must(err)
	p.peer.begin("try", p.path).expect("refused")
	p.peer.begin("revoke", p.path).expect("asked")
	select {
	case <-g.Revoked():
	case <-p.ctx.Done():
		p.Fatal("Curator's Revoker is not heard")
	}
	p.must(g.Release(p.ctx))
	d := p.peer.begin("mutex", p.path)
	d.expect("held")
	if _, err := m.TryLock(p.ctx); !errors.Is(err, recipes.ErrNotAcquired) {
		p.Errorf("TryLock: %v, want %v", err, recipes.ErrNotAcquired)
	}
	p.must(m.Revoke(p.ctx))
	d.expect("revoked")
	d.release()
}

// LeaderSelector is a mutex with names, so a Mutex competes with it.
func (p *pair) leaderSelector() {
	m := recipes.NewMutex(p.c, p.path)
	g, err := m.Lock(p.ctx)
	p.must(err)
	d := p.peer.begin("selector", p.path)
	p.children(p.path, 2)
	last := async(func() (*recipes.Grant, error) { return m.Lock(p.ctx) })
	p.children(p.path, 3)
	d.silent()
	p.must(g.Release(p.ctx))
	d.expect("held")
	list, err := m.Participants(p.ctx)
	p.must(err)
	if string(list[0].Data) != "curator-"+d.id {
		p.Errorf("the holder is %q", list[0].Data)
	}
	pending(p, last)
	d.release()
	p.must(await(p, last).Release(p.ctx))
}

// Readers of both share, writers of both do not, and no reader overtakes a writer.
func (p *pair) rwMutex() {
	l := recipes.NewRWMutex(p.c, p.path)
	rlock := func() (*recipes.Grant, error) { return l.RLock(p.ctx) }
	r1, err := rlock()
	p.must(err)
	r2 := p.peer.begin("read", p.path)
	r2.expect("held") // both read
	w3 := p.peer.begin("write", p.path)
	p.children(p.path, 3)
	r4 := async(rlock) // after the writer
	p.children(p.path, 4)
	w5 := async(func() (*recipes.Grant, error) { return l.Lock(p.ctx) })
	p.children(p.path, 5)
	r6 := p.peer.begin("read", p.path)
	p.children(p.path, 6)
	p.must(r1.Release(p.ctx))
	w3.silent()
	r2.release()
	w3.expect("held")
	pending(p, r4)
	w3.release()
	g4 := await(p, r4)
	pending(p, w5)
	p.must(g4.Release(p.ctx))
	g5 := await(p, w5)
	r6.silent()
	// Downgraded, the writer reads together with the next reader.
	down, err := l.Downgrade(p.ctx, g5)
	p.must(err)
	r6.expect("held")
	p.must(down.Release(p.ctx))
	r6.release()
}

// Two places, taken by both, and given in turn.
func (p *pair) semaphore() {
	s := recipes.NewSemaphore(p.c, p.path, 2)
	acquire := func() (*recipes.Grant, error) { return s.Acquire(p.ctx) }
	g1, err := acquire()
	p.must(err)
	d2 := p.peer.begin("semaphore", p.path, 2)
	d2.expect("held")
	if _, err := s.TryAcquire(p.ctx); !errors.Is(err, recipes.ErrNotAcquired) {
		p.Errorf("a third place: %v", err)
	}
	d3 := p.peer.begin("semaphore", p.path, 2)
	p.children(p.path+"/locks", 1) // the waiters
	g4 := async(acquire)
	p.children(p.path+"/locks", 2)
	d3.silent()
	p.must(g1.Release(p.ctx))
	d3.expect("held")
	pending(p, g4)
	d2.release()
	p.must(await(p, g4).Release(p.ctx))
	d3.release()
	p.children(p.path+"/leases", 0)
}

// Candidates of both lead in turn, and each sees the other.
func (p *pair) election() {
	e := recipes.NewElection(p.c, p.path, recipes.WithData([]byte("go")))
	first, err := e.Campaign(p.ctx)
	p.must(err)
	second := p.peer.begin("latch", p.path)
	p.children(p.path, 2)
	third := async(func() (*recipes.Term, error) { return e.Campaign(p.ctx) })
	p.children(p.path, 3)
	second.eventually("list", "go*,curator-"+second.id+",go")
	second.silent()
	p.must(first.Resign(p.ctx))
	second.expect("held")
	leader, err := e.Leader(p.ctx)
	p.must(err)
	if string(leader.Data) != "curator-"+second.id {
		p.Errorf("the leader is %q", leader.Data)
	}
	pending(p, third)
	second.release()
	p.must(await(p, third).Resign(p.ctx))
	p.children(p.path, 0)
}
