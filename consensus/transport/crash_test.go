package transport

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

var (
	crashTime = flag.Duration("peer.crashtime", 10*time.Second,
		"virtual length of each power-cut simulation")
)

// crashMode is the configuration of a power-cut simulation. The unsafe modes prove that the simulation catches the
// faults for which it exists.
type crashMode struct {
	n       int
	options Options
	// unsafeLeader: the leader does not wait for its own disk.
	unsafeLeader bool
	// unsafeFollower: followers let StoreLogs return early, and do not withhold.
	unsafeFollower bool
}

// Goal: no acknowledged write is lost and no index has two entries, over all servers and all their
// lives, when power is cut again and again under load. Method: simulated disks on which a record is
// volatile until its sync ends; a cut keeps a random prefix of the volatile tail. All servers at
// once, the leader, the leader and one more, any one, or the leader isolated with a slow disk;
// restarts in random order, the old leader late half the time. Snapshots run meanwhile.
func TestCrash_Overlap_LosesNothing(t *testing.T) {
	tier.Seconds(t)
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { runCrash(t, crashMode{n: n}, false) })
	}
}

func TestCrash_Synchronous_LosesNothing(t *testing.T) {
	runCrash(t, crashMode{n: 3, options: Options{NoOverlap: true}}, false)
}

// The negative controls: without one of the two halves the simulation must find losses.
func TestCrash_LeaderDoesNotWait_IsCaught(t *testing.T) {
	runCrash(t, crashMode{n: 3, unsafeLeader: true}, true)
}

func TestCrash_FollowerDoesNotDelay_IsCaught(t *testing.T) {
	tier.Seconds(t)
	runCrash(t, crashMode{n: 3, unsafeFollower: true}, true)
}

// runCrash runs one simulation; a control may need several until it is caught.
func runCrash(t *testing.T, m crashMode, control bool) {
	seed := seed.Of(t)
	tries := uint64(1)
	if control {
		tries = 100 // about every other one catches it: all missing it is out of the question
	}
	for i := range tries {
		var res crashResult
		synctest.Test(t, func(t *testing.T) { res = simulateCrashes(t, m, seed+i) })
		t.Logf("seed %d: %d acknowledged, %d volatile records lost in %d cuts, %d batches "+
			"let go, violations: %d %.200v", seed+i, res.acked, res.lost, res.cuts, res.async,
			len(res.bad), res.bad)
		if res.acked < 100 || res.cuts == 0 {
			t.Fatal("the simulation did not exercise what it is for")
		}
		if control && len(res.bad) > 0 {
			return
		}
		if !control && len(res.bad) > 0 {
			t.Fatalf("%d violations", len(res.bad))
		}
	}
	if control {
		t.Fatalf("%d simulations did not catch the fault", tries)
	}
}

type crashResult struct {
	acked, lost, cuts int
	async             int64
	bad               []string
}

// crashes is one running simulation.
type crashes struct {
	*cluster
	rng     *rand.Rand
	witness *witness
	ended   sync.WaitGroup // lives that were cut and wind down
	cuts    int

	mu    sync.Mutex // protects the fields below
	acked map[string]bool
	async int64
}

func simulateCrashes(t *testing.T, m crashMode, seed uint64) crashResult {
	w := &witness{}
	x := &crashes{
		rng: rand.New(rand.NewPCG(seed, 2)), witness: w, acked: map[string]bool{},
	}
	x.cluster = newCluster(t, clusterOptions{
		n: m.n, seed: seed, syncTime: randomSync, options: m.options, witness: w,
		wire: m.wire, transport: m.transport,
		config: func(_ uint64, c *raft.Config) {
			c.HeartbeatTimeout, c.ElectionTimeout = 120*time.Millisecond, 120*time.Millisecond
			c.LeaderLeaseTimeout, c.CommitTimeout = 100*time.Millisecond, 10*time.Millisecond
			c.SnapshotThreshold, c.TrailingLogs = 300, 100
			c.SnapshotInterval = 300 * time.Millisecond
		},
	})
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for c := range 6 {
		clients.Go(func() { x.client(c, stop) })
	}
	for end := time.Now().Add(*crashTime); time.Now().Before(end); {
		clock.Sleep(x.ms(100, 400))
		x.fault()
	}
	close(stop)
	clients.Wait()
	for _, s := range x.servers {
		s.disk.setSlow(0)
		x.reconnect(s)
	}
	res := crashResult{acked: len(x.acked), cuts: x.cuts}
	res.bad = x.verify()
	x.ended.Wait()
	for _, s := range x.servers {
		s.disk.mu.Lock()
		res.lost += s.disk.lost
		s.disk.mu.Unlock()
		x.async += s.t.Stats().Async
	}
	res.async = x.async
	return res
}

// wire takes the safety off, for the controls.
func (m crashMode) wire(s *server) {
	none := func(uint64) error { return nil }
	if m.unsafeLeader {
		s.t.overlap.leaderWait = none
	}
	if m.unsafeFollower {
		s.t.overlap.answerWait = none
		s.store.async = func(batch []*raft.Log) bool {
			r := s.t.raft.Load()
			return r != nil && r.State() == raft.Follower || s.t.overlap.mayReturnEarly(batch)
		}
	}
}

// transport is what raft runs on.
func (m crashMode) transport(s *server) raft.Transport {
	if m.unsafeLeader || m.unsafeFollower {
		return patient{s.t}
	}
	return s.t
}

// patient delays each request that is declined. Where a control has made two servers commit different entries at one
// index, raft's leader and follower decline each other without end, the log, the snapshot before it, and the log again,
// and the bubble's clock would not advance.
type patient struct{ *Transport }

func (p patient) AppendEntries(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	err := p.Transport.AppendEntries(id, target, req, resp)
	if err == nil && !resp.Success {
		clock.Sleep(time.Millisecond)
	}
	return err
}

func (x *crashes) ms(least, spread int) time.Duration {
	return time.Duration(least+x.rng.IntN(spread)) * time.Millisecond
}

// client writes one entry after the other through the present leader.
func (x *crashes) client(c int, stop chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		sent := false
		for _, s := range x.servers {
			r := s.raft()
			if r == nil || r.State() != raft.Leader {
				continue
			}
			sent = true
			data := fmt.Sprintf("c%d-%d", c, i)
			s.mu.Lock()
			applied := s.fsm.expect(data)
			s.mu.Unlock()
			// The server answers its client when its own state machine applies. raft's future does not serve for that:
			// an entry queued when a life ends never gets an answer.
			r.Apply([]byte(data), 0)
			select {
			case <-applied:
				x.mu.Lock()
				x.acked[data] = true
				x.mu.Unlock()
			case <-time.After(200 * time.Millisecond): // outcome unknown
			}
		}
		if !sent {
			clock.Sleep(2 * time.Millisecond)
		}
	}
}

// fault does one thing that can happen to a machine room.
func (x *crashes) fault() {
	for _, s := range x.servers {
		s.disk.setSlow(0)
		if x.rng.IntN(3) == 0 {
			s.disk.setSlow(x.ms(0, 40))
		}
	}
	var leaders []*server
	for _, s := range x.servers {
		if r := s.raft(); r != nil && r.State() == raft.Leader {
			leaders = append(leaders, s)
		}
	}
	anyone := x.servers[x.rng.IntN(len(x.servers))]
	switch x.rng.IntN(5) {
	case 0:
		x.cutAndRestart(x.servers, leaders)
	case 1:
		x.cutAndRestart([]*server{anyone}, leaders)
	case 2:
		x.cutAndRestart(leaders, leaders)
	case 3:
		if !in(anyone, leaders) {
			leaders = append(leaders[:len(leaders):len(leaders)], anyone)
		}
		x.cutAndRestart(leaders, leaders)
	case 4:
		for _, s := range leaders {
			s.disk.setSlow(x.ms(0, 300))
			clock.Sleep(x.ms(0, 10))
			x.f.Isolate(s.addr, x.addrs(), true)
			wait := x.ms(150, 300)
			x.ended.Go(func() { clock.Sleep(wait); x.reconnect(s) })
		}
	}
}

func (x *crashes) addrs() (a []string) {
	for _, s := range x.servers {
		a = append(a, s.addr)
	}
	return a
}

func (x *crashes) reconnect(s *server) { x.f.Isolate(s.addr, x.addrs(), false) }

// cutAndRestart cuts the power of the victims at one instant; they return in random order.
func (x *crashes) cutAndRestart(victims, leaders []*server) {
	leaderLate := x.rng.IntN(2) == 0
	waits := make([]time.Duration, len(victims))
	for i, s := range victims {
		waits[i] = x.ms(0, 150)
		if leaderLate == in(s, leaders) {
			waits[i] += x.ms(0, 700)
		}
		x.cutPower(s)
	}
	var back sync.WaitGroup
	for i, s := range victims {
		back.Go(func() {
			clock.Sleep(waits[i])
			x.start(s, nil)
		})
	}
	back.Wait()
}

func (x *crashes) cutPower(s *server) {
	x.cuts++
	x.f.Vanish(s.addr)
	s.disk.cut()
	s.mu.Lock()
	r, mux, tr, store := s.r, s.mux, s.t, s.store
	s.r = nil
	s.mu.Unlock()
	mux.Close()
	x.mu.Lock()
	x.async += tr.Stats().Async
	x.mu.Unlock()
	x.ended.Go(func() { // the old life winds down; its view of the disk is dead
		r.Shutdown().Error()
		<-store.done
	})
}

// verify lets the cluster converge and looks for the acknowledged entries.
func (x *crashes) verify() (bad []string) {
	converged := false
	for limit := time.Now().Add(30 * time.Second); !converged && time.Now().Before(limit); {
		clock.Sleep(20 * time.Millisecond)
		for _, s := range x.servers {
			if r := s.raft(); r.State() != raft.Leader || r.Barrier(time.Second).Error() != nil {
				continue
			}
			want := s.raft().CommitIndex()
			clock.Sleep(300 * time.Millisecond)
			converged = true
			for _, o := range x.servers {
				converged = converged && o.raft().AppliedIndex() >= want
			}
			break
		}
	}
	if !converged {
		bad = append(bad, "no convergence")
		x.t.Log(x.report())
	}
	for _, s := range x.servers {
		have := map[string]bool{}
		s.fsm.mu.Lock()
		for _, d := range s.fsm.data {
			have[d] = true
		}
		s.fsm.mu.Unlock()
		missing := 0
		for d := range x.acked {
			if !have[d] {
				missing++
			}
		}
		if missing > 0 {
			bad = append(bad, fmt.Sprintf("server %d misses %d acknowledged writes", s.id, missing))
		}
	}
	x.witness.mu.Lock()
	defer x.witness.mu.Unlock()
	return append(bad, x.witness.bad...)
}
