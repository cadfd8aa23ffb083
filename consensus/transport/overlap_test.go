package transport

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// randomSync is a disk that mostly takes up to 3 ms and sometimes 25 ms more.
func randomSync(r *rand.Rand) time.Duration {
	d := time.Duration(r.IntN(3000)) * time.Microsecond
	if r.IntN(30) == 0 {
		d += time.Duration(r.IntN(25)) * time.Millisecond
	}
	return d
}

// Goal: the leader's sync and the followers' run at the same time, and still nothing commits before the leader's disk
// has it. Method: disks of fixed speed; virtual time shows which of them it waited for.
func TestOverlap_Commit_WaitsForBothDisks(t *testing.T) {
	const leaderDisk, followerDisk = 100 * time.Millisecond, 30 * time.Millisecond
	for _, off := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, clusterOptions{options: Options{NoOverlap: off}})
			l := c.leader()
			c.apply(l, "first")
			clock.Sleep(time.Second)
			l.disk.setSlow(leaderDisk)
			for _, s := range c.others(l) {
				s.disk.setSlow(followerDisk)
			}
			start := time.Now()
			a := c.apply(l, "x")
			took := a.at.Sub(start)
			want := leaderDisk
			if off {
				want += followerDisk
			}
			if took != want {
				t.Fatalf("off=%v: committed after %v, want %v", off, took, want)
			}
			if d := l.store.durableIndex(); d < a.index {
				t.Fatalf("off=%v: %d committed, the leader's disk has %d", off, a.index, d)
			}
			if async := l.t.Stats().Async; (async == 0) != off {
				t.Fatalf("off=%v: %d batches were let go", off, async)
			}
			for _, s := range c.servers {
				s.disk.setSlow(0)
			}
		})
	}
}

// With a follower's disk as the slowest, one follower is enough for the quorum.
func TestOverlap_Commit_NeedsNoSlowFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		c.apply(l, "first")
		clock.Sleep(time.Second)
		l.disk.setSlow(10 * time.Millisecond)
		c.others(l)[0].disk.setSlow(400 * time.Millisecond)
		start := time.Now()
		if a := c.apply(l, "x"); a.at.Sub(start) != 10*time.Millisecond {
			t.Fatalf("committed after %v", a.at.Sub(start))
		}
		for _, s := range c.servers {
			s.disk.setSlow(0)
		}
	})
}

// Goal: mayReturnEarly denies what the argument in overlap.go needs denied.
func TestOverlap_MayReturnEarly_Denies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		allowed := map[raft.LogType]int{}
		denied := map[raft.LogType]int{}
		follower := 0
		c := newCluster(t, clusterOptions{wire: func(s *server) {
			rule := s.store.async
			s.store.async = func(batch []*raft.Log) bool {
				ok := rule(batch)
				mu.Lock()
				defer mu.Unlock()
				for _, e := range batch {
					if ok {
						allowed[e.Type]++
					} else {
						denied[e.Type]++
					}
				}
				r := s.t.raft.Load()
				if ok && r != nil && r.State() != raft.Leader {
					follower++
				}
				return ok
			}
		}})
		l := c.leader()
		for _, d := range []string{"a", "b", "c"} {
			c.apply(l, d)
		}
		if l.t.overlap.mayReturnEarly(nil) {
			t.Error("an empty batch may return early")
		}
		mu.Lock()
		if allowed[raft.LogCommand] != 3 || allowed[raft.LogNoop] != 1 {
			t.Errorf("the leader's batches that returned early: %v", allowed)
		}
		mu.Unlock()
		// Shrink to one voter: the configuration entries and all later ones are synchronous.
		for _, s := range c.others(l) {
			if err := l.raft().RemoveServer(RaftID(s.id), 0, 0).Error(); err != nil {
				t.Fatal(err)
			}
		}
		before := l.t.Stats().Async
		l.disk.setSlow(50 * time.Millisecond)
		start := time.Now()
		if a := c.apply(l, "alone"); a.at.Sub(start) != 50*time.Millisecond {
			t.Errorf("a single voter committed after %v, its disk takes 50 ms", a.at.Sub(start))
		}
		l.disk.setSlow(0)
		mu.Lock()
		defer mu.Unlock()
		if l.t.Stats().Async != before || allowed[raft.LogConfiguration] != 0 || follower != 0 {
			t.Errorf("returned early: %v (by non-leaders %d), alone %d",
				allowed, follower, l.t.Stats().Async-before)
		}
		if denied[raft.LogConfiguration] == 0 {
			t.Error("no configuration entry was seen")
		}
	})
}

// Goal: a deposed leader that finds the new leader's entries already in its log acknowledges them
// only when its own disk has them; a plain follower's answers are not touched. Method: an isolated
// leader with a slow disk is handed an AppendEntries with the tail that it stored itself.
func TestOverlap_DeposedLeader_DelaysAcknowledgement(t *testing.T) {
	const slow = 700 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{options: Options{StallLimit: -1}})
		l := c.leader()
		c.apply(l, "first")
		clock.Sleep(time.Second)
		for _, s := range c.others(l) {
			if n := s.t.Stats().Delayed; n != 0 {
				t.Fatalf("%d answers of a follower that never led were withheld", n)
			}
		}
		c.f.Isolate(l.addr, []string{"s1", "s2", "s3"}, true)
		l.disk.setSlow(slow)
		start := time.Now()
		l.raft().Apply([]byte("tail"), 0)
		clock.Sleep(10 * time.Millisecond)
		last := l.raft().LastIndex()
		var tail raft.Log
		if err := l.store.GetLog(last, &tail); err != nil || l.store.durableIndex() >= last {
			t.Fatalf("no volatile tail: %v", err)
		}
		var prev raft.Log
		if err := l.store.GetLog(last-1, &prev); err != nil {
			t.Fatal(err)
		}
		// The request of a leader of the next term that has the entry.
		out := make(chan raft.RPCResponse, 1)
		req := &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("9"), Addr: []byte("s9")},
			Term:      l.raft().CurrentTerm() + 1, PrevLogEntry: prev.Index,
			PrevLogTerm: prev.Term, Entries: []*raft.Log{&tail},
		}
		l.t.deliver(raft.RPC{Command: req, RespChan: l.t.overlap.delay(out, tail.Index)})
		resp := <-out
		a := resp.Response.(*raft.AppendEntriesResponse)
		if resp.Error != nil || !a.Success {
			t.Fatalf("answer %+v, %v", a, resp.Error)
		}
		if d := time.Since(start); d < slow {
			t.Fatalf("acknowledged after %v, before its disk's %v", d, slow)
		}
		// Now that the tail is settled, answers pass directly again.
		synctest.Wait()
		if l.t.overlap.delay(out, tail.Index) != (chan<- raft.RPCResponse)(out) {
			t.Fatal("answers are still withheld although nothing is volatile")
		}
		l.disk.setSlow(0)
	})
}

// Goal: a leader whose disk hangs for longer than StallLimit loses its leadership although its
// main loop and its network are fine.
func TestOverlap_StalledDisk_LeaderStepsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{options: Options{StallLimit: 300 * time.Millisecond}})
		l := c.leader()
		c.apply(l, "first")
		clock.Sleep(time.Second)
		l.disk.setSlow(8 * time.Second)
		start := time.Now()
		lost := l.raft().Apply([]byte("stuck"), 0)
		n := c.leader(l)
		c.apply(n, "second")
		t.Logf("first commit of the new leader %v after the stall began", time.Since(start))
		if d := time.Since(start); d > 3*time.Second {
			t.Fatalf("it took %v", d)
		}
		if lost.Error() == nil {
			// Legal: the new leader may have had it. Then it must be applied there.
			c.await("applied", func() bool { _, ok := n.fsm.has("stuck"); return ok })
		}
		if l.t.Stats().Stalls == 0 {
			t.Fatal("no RPC was held back")
		}
		l.disk.setSlow(0)
		clock.Sleep(10 * time.Second)
	})
}
