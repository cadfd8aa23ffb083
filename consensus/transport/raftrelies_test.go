package transport

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/testkit/clock"
)

// What this package relies on in hashicorp/raft beyond its interfaces; see consensus/RAFT.md.

// Goal: isHeartbeat recognizes raft's heartbeats, and nothing else. Method: a leader with nothing to replicate sends
// only heartbeats until CommitTimeout, and then an empty request that is none.
func TestReliesOn_Heartbeats_HaveThreeZeroFields(t *testing.T) {
	for _, commit := range []time.Duration{time.Hour, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, clusterOptions{config: func(_ uint64, c *raft.Config) { c.CommitTimeout = commit }})
			l := c.leader()
			c.apply(l, "x")
			clock.Sleep(time.Second)
			before := l.t.Stats()
			clock.Sleep(time.Minute)
			after := l.t.Stats()
			heartbeats, empty := after.Heartbeats-before.Heartbeats, after.Empty-before.Empty
			if least := int64(2 * time.Minute / testConfig(1).HeartbeatTimeout); heartbeats < least {
				t.Errorf("%d heartbeats to two followers in a minute, want %d and more", heartbeats, least)
			}
			if (empty > 0) != (commit < time.Minute) {
				t.Errorf("CommitTimeout %v: %d empty requests in a minute", commit, empty)
			}
		})
	}
}

// widestTransport notes the most entries that raft puts into a request.
type widestTransport struct {
	*Transport
	widest *atomic.Int64
}

func (w widestTransport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	if n := int64(len(req.Entries)); n > w.widest.Load() {
		w.widest.Store(n)
	}
	return w.Transport.AppendEntries(id, target, req, resp)
}

// Goal: raft fills a request up to maxAppendEntries, by which snapshotReceivers knows a follower that has
// not caught up, and not beyond.
func TestReliesOn_MaxAppendEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var widest atomic.Int64
		c := newCluster(t, clusterOptions{transport: func(s *server) raft.Transport {
			return widestTransport{s.t, &widest}
		}})
		l := c.leader()
		away := c.others(l)[0]
		away.end()
		for range 3 * maxAppendEntries {
			c.apply(l, "x")
		}
		c.apply(l, "last")
		c.start(away, nil)
		c.await("the follower has caught up", func() bool { _, ok := away.fsm.has("last"); return ok })
		if got := widest.Load(); got != int64(maxAppendEntries) {
			t.Errorf("the widest request had %d entries, want %d", got, maxAppendEntries)
		}
	})
}

// Goal: raft's Stats has what lastEntry reads, of the log as well as of a snapshot that reaches further.
func TestReliesOn_Stats_LastEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, clusterOptions{config: func(_ uint64, c *raft.Config) { c.TrailingLogs = 1 }})
		l := c.leader()
		for range 5 {
			c.apply(l, "x")
		}
		r := l.raft()
		if index, term := lastEntry(r); index != r.LastIndex() || term != r.CurrentTerm() {
			t.Errorf("the last entry is %d of term %d, want %d of %d", index, term, r.LastIndex(), r.CurrentTerm())
		}
		away := c.others(l)[0]
		away.end()
		for range 20 {
			c.apply(l, "y")
		}
		if err := r.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		last := r.LastIndex()
		c.start(away, nil)
		c.await("the follower has the snapshot", func() bool { return away.raft().AppliedIndex() >= last })
		if index, term := lastEntry(away.raft()); index != last || term != r.CurrentTerm() {
			t.Errorf("after a snapshot the last entry is %d of term %d, want %d of %d", index, term, last, r.CurrentTerm())
		}
	})
}
