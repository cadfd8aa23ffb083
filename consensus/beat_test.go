package consensus

import (
	"testing"
	"time"
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
