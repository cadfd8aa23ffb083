package transport

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// Goal: a follower that is sent a snapshot while it writes an older one of its own ends with the newer, and takes
// entries. raft alone then takes the older for its last; the simulation found a follower that stayed so for ever.
func TestRegression_OwnSnapshotWhileOneIsInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{config: func(_ uint64, c *raft.Config) { c.TrailingLogs = 1 }})
		l := c.leader()
		f := c.others(l)[0]
		for i := range 10 {
			c.apply(l, fmt.Sprint("before ", i))
		}
		c.await("the follower has it", func() bool { _, ok := f.fsm.has("before 9"); return ok })

		f.fsm.slow = make(chan struct{})
		own := f.raft().Snapshot()
		c.await("the follower writes a snapshot", func() bool { return len(f.t.snapshots) == 1 })
		var others []string
		for _, s := range c.others(f) {
			others = append(others, s.addr)
		}
		c.f.Isolate(f.addr, others, true)
		for i := range 10 {
			c.apply(l, fmt.Sprint("after ", i))
		}
		if err := l.raft().Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		c.f.Isolate(f.addr, others, false)
		clock.Sleep(2 * time.Second) // long enough for the leader to send its snapshot

		close(f.fsm.slow)
		if err := own.Error(); err != nil {
			t.Errorf("the follower's own snapshot: %v", err)
		}
		if last, has := f.raft().LastIndex(), f.raft().AppliedIndex(); last < has {
			t.Errorf("the follower's log ends at %d, and it has applied %d", last, has)
		}
		if _, entry := f.fsm.has("after 0"); entry {
			t.Error("the follower got the entries, and no snapshot: nothing was shown")
		}
		c.apply(l, "and on")
		c.await("the follower takes entries", func() bool { _, ok := f.fsm.has("and on"); return ok })
	})
}
