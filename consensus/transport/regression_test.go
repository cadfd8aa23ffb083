package transport

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// plain is what raft would run on without this package's Transport: the same network with the fast
// path for heartbeats, and with pipelining where it is asked for.
type plain struct {
	*raft.NetworkTransport

	mu        sync.Mutex // protects the field below
	pipelines []raft.AppendPipeline
}

// onPlain makes a cluster run without the Transport.
func onPlain(inFlight int) func(s *server) raft.Transport {
	return func(s *server) raft.Transport {
		p := &plain{NetworkTransport: raft.NewNetworkTransportWithConfig(
			&raft.NetworkTransportConfig{
				Stream: s.spare(), MaxPool: 3, Timeout: time.Second,
				MaxRPCsInFlight: inFlight, Logger: hclog.NewNullLogger(),
			})}
		s.plain = p
		return p
	}
}

func (p *plain) AppendEntriesPipeline(
	id raft.ServerID, addr raft.ServerAddress,
) (raft.AppendPipeline, error) {
	pipeline, err := p.NetworkTransport.AppendEntriesPipeline(id, addr)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pipelines = append(p.pipelines, pipeline)
	}
	return pipeline, err
}

// unwedge ends what raft itself cannot end: a goroutine in a wedged pipeline waits for good, and
// raft's shutdown for it.
func (p *plain) unwedge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pipeline := range p.pipelines {
		pipeline.Close()
	}
}

// spare replaces the server's mux by one whose stream layer is not in use.
func (s *server) spare() raft.StreamLayer {
	s.t.Close()
	s.mux.Close()
	s.mux = mux.New(mux.Config{Listener: s.f.Listen(s.addr), Dial: s.f.Dialer(s.addr)})
	s.mux.SetIdentity(testEnsemble, s.id)
	return streamLayer{s.mux}
}

// eachTransport runs a test on raft alone, where it has to show the fault, and on the Transport. The day on
// which raft alone shows a fault no longer, its repair can go.
func eachTransport(t *testing.T, test func(t *testing.T, opt clusterOptions, wrapped bool)) {
	for _, wrapped := range []bool{false, true} {
		t.Run(fmt.Sprintf("wrapped=%v", wrapped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := clusterOptions{}
				if !wrapped {
					opt.transport = onPlain(1)
				}
				test(t, opt, wrapped)
			})
		})
	}
}

// rounds is how often a test tries to provoke a fault of hashicorp/raft. Without the Transport, about
// every other round or every third does, and the first that does is enough.
func rounds(wrapped bool) int {
	if wrapped {
		return 6
	}
	return 100
}

// hashicorp/raft issue 695: the transport's goroutine that handles a new leader's heartbeat on the
// fast path sets term and state while the old leader's main loop sits in its select; the next Apply
// there is stored with the NEW term, at an index where the new leader has another entry of that
// term. Log matching then takes the two for the same, and the state machines differ forever.
//
// Method: three servers; the old leader's lease is set not to fire (a paused process, a clock in
// trouble). It is isolated, another is elected and commits, the isolation ends, and the old leader
// is written to as soon as the new leader's first heartbeat has come. Without the Transport this
// has to show the fault, or the test would prove nothing.
func TestRegression_HeartbeatFastPath_NoDivergence(t *testing.T) {
	tier.Seconds(t)
	for _, wrapped := range []bool{false, true} {
		t.Run(fmt.Sprintf("wrapped=%v", wrapped), func(t *testing.T) {
			diverged := false
			for range rounds(wrapped) {
				synctest.Test(t, func(t *testing.T) { diverged = provokeDivergence(t, wrapped) })
				if diverged {
					break
				}
			}
			if diverged == wrapped {
				t.Fatalf("diverged: %v, with the Transport: %v", diverged, wrapped)
			}
		})
	}
}

func provokeDivergence(t *testing.T, wrapped bool) bool {
	opt := clusterOptions{
		// Failover and push are beside the point: no early election, nothing but raft's RPCs.
		options: Options{NoFailover: true, NoPush: true, NoOverlap: true},
		config: func(id uint64, c *raft.Config) {
			if id == 1 {
				c.HeartbeatTimeout, c.ElectionTimeout = time.Minute, time.Minute
				c.LeaderLeaseTimeout = time.Minute
			}
		},
	}
	if !wrapped {
		opt.transport = onPlain(1)
	}
	c := newCluster(t, opt)
	old := c.servers[0]
	for l := c.leader(); l != old; l = c.leader() {
		l.raft().LeadershipTransferToServer("1", rafts(old.addr)).Error()
		clock.Sleep(100 * time.Millisecond)
	}
	keep := make(chan struct{})
	var alive sync.WaitGroup
	alive.Go(func() { // its heartbeats would come every 6 s with these settings
		for {
			select {
			case <-keep:
				return
			case <-time.After(100 * time.Millisecond):
				old.raft().VerifyLeader()
			}
		}
	})
	for i := range 5 {
		old.raft().Apply(fmt.Append(nil, "v", i), 0).Error()
	}
	clock.Sleep(time.Second)
	close(keep)
	alive.Wait()
	c.f.Isolate(old.addr, []string{"s2", "s3"}, true)
	next := c.leader(old)
	for i := range 3 {
		next.raft().Apply(fmt.Append(nil, "new", i), 0).Error()
	}
	clock.Sleep(5 * time.Second)
	c.f.Isolate(old.addr, []string{"s2", "s3"}, false)
	term := next.raft().CurrentTerm()
	for range 3000 {
		clock.Sleep(time.Millisecond)
		if old.raft().CurrentTerm() == term {
			break
		}
	}
	// Whatever becomes of it: the future may stay without an answer.
	old.raft().Apply([]byte("EVIL"), 0)
	clock.Sleep(time.Minute)
	l := c.leader()
	l.raft().Apply([]byte("after"), 0)
	clock.Sleep(5 * time.Second)
	return differ(t, c.servers)
}

// differ reports whether two logs have different entries of the same index and term.
func differ(t *testing.T, servers []*server) bool {
	type key struct{ index, term uint64 }
	seen := map[key]string{}
	for _, s := range servers {
		for i := uint64(1); i <= s.raft().LastIndex(); i++ {
			var e raft.Log
			if s.store.GetLog(i, &e) != nil {
				continue
			}
			k, what := key{e.Index, e.Term}, fmt.Sprintf("%v %q", e.Type, e.Data)
			if old, ok := seen[k]; ok && old != what {
				t.Logf("index %d, term %d: %s and %s", i, e.Term, old, what)
				return true
			}
			seen[k] = what
		}
	}
	return false
}

// hashicorp/raft issue 612: with pipelining (two requests in flight, raft's default), one failed
// StoreLogs at a follower under load can leave the follower behind for good, new traffic or not.
//
// Method: 16 writers, one injected write error at a follower, then wait ten virtual seconds and
// write some more. With raft's default transport settings this has to wedge within some rounds.
func TestRegression_FailedWrite_NoPipelineWedge(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		t.Run(fmt.Sprintf("wrapped=%v", wrapped), func(t *testing.T) {
			wedged := false
			for range rounds(wrapped) {
				synctest.Test(t, func(t *testing.T) { wedged = provokeWedge(t, wrapped) })
				if wedged {
					break
				}
			}
			if wedged == wrapped {
				t.Fatalf("wedged: %v, with the Transport: %v", wedged, wrapped)
			}
		})
	}
}

func provokeWedge(t *testing.T, wrapped bool) bool {
	opt := clusterOptions{syncTime: randomSync, seed: 7, config: func(_ uint64, c *raft.Config) {
		c.HeartbeatTimeout, c.ElectionTimeout = 2*time.Second, 2*time.Second
		c.LeaderLeaseTimeout = 2 * time.Second
	}}
	if !wrapped {
		opt.transport = onPlain(2)
	}
	c := newCluster(t, opt)
	l := c.leader()
	f := c.others(l)[0]
	l.raft().Barrier(0).Error()
	clock.Sleep(200 * time.Millisecond)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if l.raft().Apply(make([]byte, 200), 0).Error() != nil {
						return // spinning would stop the bubble's clock
					}
				}
			}
		})
	}
	clock.Sleep(30 * time.Millisecond)
	f.disk.mu.Lock()
	f.disk.fail = 1
	f.disk.mu.Unlock()
	clock.Sleep(100 * time.Millisecond)
	close(stop)
	writers.Wait()
	clock.Sleep(5 * time.Second)
	for range 20 {
		l.raft().Apply(make([]byte, 20), 0).Error()
	}
	last := l.raft().LastIndex()
	t.Logf("%v: last %d; follower: last %d", l.raft(), last, f.raft().LastIndex())
	clock.Sleep(5 * time.Second)
	return f.raft().LastIndex() < last
}
