package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/recipes"
)

const (
	// soakTime is how long there are faults, unless ZK_LITE_SOAK gives another time ("10m").
	soakTime = 6 * time.Second
	// clients is the number of simulated processes, each with its session.
	clients = 4
	// sessionTimeout is short, so that sessions are lost often.
	sessionTimeout = 2 * time.Second
	// restMost bounds the pause of a worker between two rounds. Eighty of them would otherwise occupy the machine.
	restMost = 40 * time.Millisecond
	// root is above all that the soak makes.
	root = "/soak"
	// maxErrors bounds the failures that are printed.
	maxErrors = 20
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func path(name string) string { return root + "/" + name }

// soak is one run.
type soak struct {
	*testing.T
	e       *cluster.Ensemble
	clients []*client.Client
	wires   []*wire
	pulse   *pulse
	ctx     context.Context // of the whole run
	stop    context.Context // ends when the workers have to finish
	seeds   *rand.Rand
	running sync.WaitGroup
	workers []*worker
	ends    []func() // called in their order when the workers have ended
	leave   []func() // called after these
	errors  atomic.Int64
}

// worker does one thing again and again.
type worker struct {
	name   string
	rounds atomic.Int64 // that went well
	lost   atomic.Int64 // that ended with a session, a connection or a grant
	ended  atomic.Bool
}

// TestSoak_ServersKilledAndPaused: four clients use every recipe that promises something while
// server processes are killed, paused and restarted and clients are cut off. All guarantees
// hold meanwhile; afterwards all clients continue, and when all have stopped nothing is left of
// them.
func TestSoak_ServersKilledAndPaused(t *testing.T) {
	seed, length := settings(t)
	t.Logf("seed %d, faults for %v", seed, length)
	ctx, cancel := context.WithTimeout(t.Context(), length+10*time.Minute)
	defer cancel()
	stop, finish := context.WithCancel(ctx)
	defer finish()
	s := &soak{
		T: t, e: cluster.Start(t, 3, cluster.Options{}), pulse: new(pulse), ctx: ctx, stop: stop,
		seeds: rand.New(rand.NewPCG(seed, 0)),
	}
	beating, die := context.WithCancel(ctx)
	defer die()
	go s.pulse.run(beating)
	for range clients {
		w := &wire{conns: map[net.Conn]bool{}}
		s.clients, s.wires = append(s.clients, s.connect(client.WithDialer(w.dial))), append(s.wires, w)
	}
	s.must(again(ctx, func() error { return s.clients[0].EnsurePath(ctx, root, client.Persistent) }))
	s.startGrants()
	s.startQueues()
	s.startBarriers()
	s.startValues()
	s.startBlobs()
	f := &faults{s: s, r: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}, weak: -1}
	f.run(length)
	t.Logf("faults: %v", f)
	s.allGoOn()
	finish()
	s.allStop()
	for _, end := range s.ends {
		end()
	}
	s.report()
	s.nothingLeft()
	s.e.CheckReplicas()
}

// settings are the seed and the length of the run.
func settings(t *testing.T) (uint64, time.Duration) {
	t.Helper()
	first, length := seed.Of(t), soakTime
	var err error
	if s := os.Getenv("ZK_LITE_SOAK"); s != "" {
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatalf("ZK_LITE_SOAK=%q: %v; want a duration such as 2m", s, err)
		}
	}
	return first, length
}

func (s *soak) connect(opts ...client.Option) *client.Client {
	s.Helper()
	c, err := client.Connect(s.ctx, s.e.ConnectString(), append([]client.Option{
		client.WithSessionTimeout(sessionTimeout),
		client.WithBackoff(10*time.Millisecond, 100*time.Millisecond),
	}, opts...)...)
	s.must(err)
	s.Cleanup(func() { _ = c.Close() }) // it is closed already if all is well
	return c
}

// connectLong connects a client for a check, whose session is not to be lost.
func (s *soak) connectLong() *client.Client {
	s.Helper()
	return s.connect(client.WithSessionTimeout(5 * sessionTimeout))
}

// close closes a client. If no server answers in time, its session ends by itself a moment later.
func (s *soak) close(c *client.Client) {
	s.Helper()
	if err := c.Close(); !errors.Is(err, client.ErrNotClosed) {
		s.must(err)
	}
}

func (s *soak) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// errorf records a broken promise. The run continues until its schedule checks.
func (s *soak) errorf(format string, args ...any) {
	if s.errors.Add(1) <= maxErrors {
		s.Errorf(format, args...)
	}
}

func (s *soak) failed() bool { return s.errors.Load() > 0 }

// atEnd has f called when all workers have ended.
func (s *soak) atEnd(f func()) { s.ends = append(s.ends, f) }

// work runs do again and again until the end. Errors of sessions and connections are expected; others are not.
func (s *soak) work(name string, do func(context.Context) error) {
	w := &worker{name: name}
	s.workers = append(s.workers, w)
	r := rand.New(rand.NewPCG(s.seeds.Uint64(), s.seeds.Uint64()))
	s.running.Go(func() {
		defer w.ended.Store(true)
		for s.stop.Err() == nil {
			err := do(s.stop)
			switch {
			case err == nil:
				w.rounds.Add(1)
			case s.stop.Err() != nil && errors.Is(err, context.Canceled):
			case passing(err):
				w.lost.Add(1)
			default:
				s.errorf("%s: %v", name, err)
				return
			}
			rest(s.stop, time.Duration(r.Int64N(int64(restMost))))
		}
	})
}

// passing reports whether an error is one that faults may cause.
func passing(err error) bool {
	for _, want := range []error{
		client.ErrSessionExpired, client.ErrConnectionLoss, client.ErrOutcomeUnknown,
		recipes.ErrLost, recipes.ErrEmpty,
	} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// rest lets some time pass.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// allGoOn waits until every worker has had a successful round that began after the faults: none
// is stuck.
func (s *soak) allGoOn() {
	s.Helper()
	goal := map[*worker]int64{}
	for _, w := range s.workers {
		goal[w] = w.rounds.Load() + 2 // one may be under way
	}
	wait.Succeeds(s, "every worker goes on after the faults", func() error {
		for _, w := range s.workers {
			if w.rounds.Load() < goal[w] && !s.failed() {
				return fmt.Errorf("%s is stuck after %d rounds", w.name, w.rounds.Load())
			}
		}
		return nil
	})
}

// allStop waits until every worker has ended.
func (s *soak) allStop() {
	s.Helper()
	wait.Succeeds(s, "every worker ends", func() error {
		for _, w := range s.workers {
			if !w.ended.Load() {
				return fmt.Errorf("%s does not end", w.name)
			}
		}
		return nil
	})
	s.running.Wait()
}

func (s *soak) report() {
	rounds, lost := int64(0), int64(0)
	for _, w := range s.workers {
		rounds += w.rounds.Load()
		lost += w.lost.Load()
	}
	s.Logf("%d workers: %d rounds went well, %d ended with a lost session, connection or grant",
		len(s.workers), rounds, lost)
}
