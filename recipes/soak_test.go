package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/proxy"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
	"github.com/zk-lite/zk-lite/recipes/internal/zktest"
)

// soakTime is how long the randomised test disturbs, unless ZK_LITE_SOAK says
// otherwise ("2m").
const soakTime = 4 * time.Second

// The clients of one soak, and how many goroutines each has with a recipe.
const soakClients = 4

// fence is a resource that one client at a time may use: it knows the highest token, and its
// present user.
type fence struct {
	what string
	max  atomic.Int64
	in   sync.Mutex // held by the one that is in
	uses atomic.Int64
}

// use is the holder's use of the resource. No other may be in it while the grant is
// held, and no older token come.
func (f *fence) use(g *recipes.Grant) error {
	if !f.in.TryLock() {
		// The one that is in must have lost its grant by now, and be about to leave.
		f.in.Lock()
	}
	defer f.in.Unlock()
	if g.Err() != nil {
		return nil
	}
	token := g.FencingToken()
	if last := f.max.Load(); token < last && g.Err() == nil {
		return fmt.Errorf("%s: token %d is used after %d, want tokens that grow", f.what, token, last)
	}
	f.max.Store(max(token, f.max.Load()))
	f.uses.Add(1)
	return nil
}

// soak is one randomised run.
type soak struct {
	*kit
	e       *zktest.Ensemble
	clients []*client.Client
	taps    []*proxy.Proxy
	stop    context.Context // ends when the workers have to finish
	workers sync.WaitGroup
	holders [3]atomic.Int64 // of mutex, election and semaphore, by their own belief
	failed  chan error
}

// Clients use locks, elections, semaphores, counters and queues while their connections are cut
// and servers are stopped and started again. Then all of that ends, and: at no time two held
// one thing, or used an older token; every item was processed once, the counter is the sum of
// the additions; no one waits, and no goroutine is left.
func TestSoak_ConnectionsCutAndServersStopped(t *testing.T) {
	tier.Seconds(t)
	seed := seed.Of(t)
	length := soakTime
	if s := os.Getenv("ZK_LITE_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("ZK_LITE_SOAK=%q: %v; want a duration such as 2m", s, err)
		}
		length = d
	}
	t.Logf("seed %d, for %v", seed, length)
	ctx, cancel := context.WithTimeout(t.Context(), length+5*time.Minute)
	defer cancel()
	s := &soak{
		kit: &kit{T: t, ctx: ctx, root: "/soak"}, e: zktest.Start(t, 3),
		failed: make(chan error, 1),
	}
	s.must(zktest.Connect(t, s.e.ConnectString()).EnsurePath(ctx, s.root, client.Persistent))
	for range soakClients {
		c, tap := zktest.ConnectTapped(t, s.e.ConnectString(), client.WithSessionTimeout(2*time.Second))
		s.clients, s.taps = append(s.clients, c), append(s.taps, tap)
	}
	stop, finish := context.WithCancel(ctx)
	defer finish()
	s.stop = stop
	used, sum := s.startWorkers()
	s.disturb(rand.New(rand.NewPCG(seed, 0)), length)
	wait.Until(t, "the mutex and the election have been used", func() bool { return used() || len(s.failed) > 0 })
	finish()
	done := make(chan struct{})
	go func() { s.workers.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("the workers do not end, want them to")
	case err := <-s.failed:
		t.Fatal(err)
	}
	select {
	case err := <-s.failed:
		t.Fatal(err)
	default:
	}
	sum()
	zktest.NoGoroutines(t)
}

// fail keeps the first failure.
func (s *soak) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// work runs f again and again until the end. What goes wrong with sessions and
// connections is part of the game.
func (s *soak) work(f func() error) {
	s.workers.Go(func() {
		for s.stop.Err() == nil {
			err := f()
			switch {
			case err == nil, errors.Is(err, client.ErrSessionExpired), errors.Is(err, recipes.ErrLost),
				errors.Is(err, client.ErrOutcomeUnknown), errors.Is(err, recipes.ErrNotAcquired),
				errors.Is(err, client.ErrConnectionLoss), errors.Is(err, recipes.ErrEmpty):
			case errors.Is(err, context.Canceled) && s.stop.Err() != nil:
			default:
				s.fail(err)
				return
			}
		}
	})
}

// disturb cuts connections, isolates clients beyond their session timeout, and stops and
// starts servers, one at a time.
func (s *soak) disturb(r *rand.Rand, length time.Duration) {
	end := time.Now().Add(length)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	down, blocked, until := -1, -1, time.Time{}
	for now := time.Now(); now.Before(end) && s.ctx.Err() == nil && len(s.failed) == 0; now = <-tick.C {
		if blocked >= 0 && now.After(until) {
			s.taps[blocked].Unblock()
			blocked = -1
		}
		switch n := r.IntN(40); {
		case n < 8:
			s.taps[r.IntN(len(s.taps))].Cut()
		case n < 11:
			s.taps[r.IntN(len(s.taps))].LoseReply([]proxy.Op{proxy.OpCreate, proxy.OpDelete, proxy.OpMulti}[r.IntN(3)])
		case n < 12 && blocked < 0:
			blocked = r.IntN(len(s.taps))
			until = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			s.taps[blocked].Block()
		case n < 14 && down < 0:
			down = r.IntN(len(s.e.Servers))
			s.e.Servers[down].Stop()
		case n < 18 && down >= 0:
			s.e.Servers[down].Start(s)
			s.e.Servers[down].WaitServing(s)
			down = -1
		}
	}
	if blocked >= 0 {
		s.taps[blocked].Unblock()
	}
	if down >= 0 {
		s.e.Servers[down].Start(s)
	}
}
