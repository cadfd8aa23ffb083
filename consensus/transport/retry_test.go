package transport

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// Goal: a follower that was away for minutes gets the entries that it missed as soon as it is back, and not when raft's
// back-off, which has grown to ten seconds by then, ends. With raft alone it waits for that.
func TestRetry_FollowerComesBack_CatchesUpAtOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt clusterOptions, wrapped bool) {
		c := newCluster(t, opt)
		l := c.leader()
		away := c.others(l)[0]
		away.end()
		last := ""
		for i := range 180 {
			last = fmt.Sprint("while away ", i)
			c.apply(l, last)
			clock.Sleep(time.Second)
		}
		start := time.Now()
		c.start(away, nil)
		c.await("the follower has caught up", func() bool {
			_, ok := away.fsm.has(last)
			return ok
		})
		took := time.Since(start)
		t.Logf("it took %v", took)
		if limit := testConfig(1).HeartbeatTimeout; wrapped != (took <= limit) {
			t.Errorf("it took %v, and a heartbeat timeout is %v", took, limit)
		}
	})
}

// Goal: the request that fails when a connection breaks is sent again at the next heartbeat, and not after
// raft's CommitTimeout: an ensemble with no server to spare waits for it. Method: CommitTimeout is a minute.
func TestRetry_ConnectionBreaks_EntryGoesOutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{config: func(_ uint64, c *raft.Config) { c.CommitTimeout = time.Minute }})
		l := c.leader()
		c.apply(l, "before")
		away, left := c.others(l)[0], c.others(l)[1]
		away.end()
		for i := range 10 {
			clock.Sleep(300 * time.Millisecond)
			start := time.Now()
			entry := l.raft().Apply(fmt.Append(nil, "entry ", i), 0)
			left.mux.CutRaft() // the follower has the entry, or not; the answer is lost
			clock.Sleep(time.Millisecond)
			left.mux.RestoreRaft()
			if err := entry.Error(); err != nil {
				t.Fatal(err)
			}
			if took, limit := time.Since(start), testConfig(1).HeartbeatTimeout; took > limit {
				t.Errorf("entry %d took %v, more than %v", i, took, limit)
			}
		}
	})
}

// Goal: with a follower out of reach, leadership can be asked to go to it again and again without a
// transfer that never ends (raft waits for the goroutine that is held), and the leader can stop.
func TestRetry_TransferToWhoIsAway_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{})
		l := c.leader()
		away := c.others(l)[0]
		away.end()
		for i := range 5 {
			c.apply(l, fmt.Sprint("before ", i))
			clock.Sleep(20 * time.Second)
			l.t.StopRetrying()
			moved := l.raft().LeadershipTransferToServer(RaftID(away.id), rafts(away.addr))
			if err := moved.Error(); err == nil {
				t.Fatal("leadership went to a server that is away")
			}
			c.await("the leader takes entries again", func() bool {
				return l.raft().Apply([]byte(fmt.Sprint("after ", i)), 0).Error() == nil
			})
		}
		start := time.Now()
		l.end()
		if took := time.Since(start); took > time.Second {
			t.Errorf("the leader took %v to stop", took)
		}
	})
}
