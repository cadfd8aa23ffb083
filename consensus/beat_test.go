package consensus

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/raftlog/faultfs"
	"github.com/zk-lite/zk-lite/znode"
)

// sparing reports whether server i's raft sends heartbeats of its own but rarely.
func (e *testEnsemble) sparing(i int) bool {
	c := e.nodes[i].raft.ReloadableConfig()
	return c.HeartbeatTimeout == spareFactor*testElection
}

// The leader's raft sends few heartbeats of its own while all others are connected, and as many as ever when
// one has gone, for that one is to hear of the leader soon when it is back. Followers' timeouts stay as they are.
func TestBeat_OwnHeartbeats_AreRareWhileAllAreConnected(t *testing.T) {
	e := newTestEnsemble(t, 3, nil)
	leader := e.leader()
	only := func() bool {
		for i := range e.nodes {
			if e.sparing(i) != (i == leader) {
				return false
			}
		}
		return true
	}
	eventually(t, "the leader alone spares heartbeats", only)
	follower := (leader + 1) % 3
	e.stop(follower)
	eventually(t, "it spares none while a server is missing", func() bool { return !e.sparing(leader) })
	e.mustStart(follower)
	eventually(t, "it spares them again", func() bool { return e.sparing(leader) })
	if err := e.nodes[leader].TransferTo(t.Context(), e.servers[follower].ID); err != nil {
		t.Fatal(err)
	}
	leader = follower
	eventually(t, "the new leader alone spares heartbeats", only)
}

// Followers hear of the leader four times in a timeout, more often than by what is left of raft's own heartbeats.
func TestBeat_FollowersHearTheLeader(t *testing.T) {
	e := newTestEnsemble(t, 3, nil)
	leader := e.leader()
	const window = 2 * time.Second
	own := 2 * (int(window/(spareFactor*testElection/10)) + 1) // at most, to both
	all := 2 * int(window/(testElection/beatsATimeout))
	var begin time.Time
	var before int64
	eventually(t, "as many heartbeats as there should be", func() bool { // in one of the windows, for others may be busy
		sent := e.nodes[leader].transport.Stats().Heartbeats
		if !e.sparing(leader) || time.Since(begin) > window {
			begin, before = time.Now(), sent
		}
		return sent-before > int64(own+all)/2
	})
}

// A transfer of leadership finds raft's timeouts as they are by default, until it has ended.
func TestBeat_Transfer_KeepsTheDefaults(t *testing.T) {
	e := newTestEnsemble(t, 3, nil)
	leader := e.leader()
	eventually(t, "the leader spares heartbeats", func() bool { return e.sparing(leader) })
	n := e.nodes[leader].Node
	ended := n.handOver()
	n.spare(true) // as beat may, at any moment
	if c := n.raft.ReloadableConfig(); c.ElectionTimeout != testElection || c.HeartbeatTimeout != testElection {
		t.Errorf("during a transfer the election timeout is %v, that of heartbeats %v, want %v",
			c.ElectionTimeout, c.HeartbeatTimeout, testElection)
	}
	ended()
	eventually(t, "it spares them again", func() bool { return e.sparing(leader) })
}

// A leader whose raft waits for the disk is not asked for heartbeats again and again: raft's own become as frequent
// as ever until it is back. The simulation found one that did not end: raft's channel for such questions was full, and
// the goroutine that delivered a follower's answer waited for room in it, holding a lock that the other one wanted.
func TestRegression_DiskHangs_RaftIsNotAskedInVain(t *testing.T) {
	e := withFaultyDisks(t, 3)
	leader := e.leader()
	x := e.nodes[leader]
	eventually(t, "the leader spares heartbeats", func() bool { return e.sparing(leader) })
	release := make(chan struct{})
	x.fs.SetFault(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpWrite {
			<-release
		}
		return nil
	})
	waiting := e.propose(leader, create("/waiting"))
	eventually(t, "raft waits for the disk", func() bool { return x.disk.waiting() > 0 })
	eventually(t, "it spares none while raft waits", func() bool { return !e.sparing(leader) })
	heartbeats := func(n int64) {
		t.Helper()
		before := x.transport.Stats().Heartbeats
		eventually(t, "followers hear of it all the same", func() bool {
			return x.transport.Stats().Heartbeats-before > n || x.disk.waiting() > diskHangs // and it is cut off
		})
	}
	heartbeats(10) // what raft had come to before is answered with them, and comes back to the same channel
	before := unheard(x.raft)
	heartbeats(20)
	if after := unheard(x.raft); after != before {
		t.Errorf("raft, which does not hear, was asked %d times more", after-before)
	}
	x.fs.SetFault(nil)
	close(release)
	if o := e.await("/waiting", waiting); o.lost || o.Code != znode.OK {
		t.Errorf("lost %v, %v", o.lost, o.Code)
	}
	eventually(t, "the leader spares heartbeats again", func() bool { return e.sparing(e.leader()) })
}
