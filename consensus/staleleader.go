package consensus

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
)

// staleLimit, in election timeouts, is how long a candidate may have a leader.
// A campaign that skips the pre-vote takes up to two, and in the one after it a
// leader that lives makes the candidate its follower.
const staleLimit = 3

// staleLeader frees a candidate of a leader that has failed. In hashicorp/raft
// v1.7.3 a server that campaigns after a TimeoutNow (a transfer of leadership,
// or a fast election) and then hears from the winner of the same term notes it
// as its leader, but stays a candidate (Raft.appendEntries,
// candidateFromLeadershipTransfer). When that leader fails now, nothing clears it:
// only a follower's heartbeat timeout does. So the candidate keeps it, and votes for
// nobody, "since we have a leader". If its own log is too short to win, a majority that
// is up elects nobody.
//
// The remedy is a TimeoutNow from itself: raft forgets the leader, stays a
// candidate, and asks for pre-votes in its next campaign as ever. Safety depends
// on none of this.
type staleLeader struct {
	id    state.ServerID // of a candidate
	since time.Time      // when the candidate was first seen with this leader; zero: it is none, or has none
}

// check is called at every tick.
func (s *staleLeader) check(n *Node) {
	l, _ := n.published.now()
	switch {
	case l.leader == state.NoServer || l.role != raft.Candidate:
		*s = staleLeader{}
	case s.since.IsZero() || l.leader != s.id:
		s.id, s.since = l.leader, time.Now()
	case time.Since(s.since) >= staleLimit*n.cfg.ElectionTimeout:
		*s = staleLeader{}
		n.logger.Warn("raft keeps a leader that it hears nothing from; clearing it", "leader", l.leader)
		n.tasks.Go(func() { clearStaleLeader(n) })
	}
}

// clearStaleLeader has raft forget its leader.
func clearStaleLeader(n *Node) {
	self := transport.RaftID(uint64(n.cfg.ID))
	request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: []byte(membership.AddressOf(n.cfg.ID)),
	}}
	var response raft.TimeoutNowResponse
	err := n.transport.TimeoutNow(self, raft.ServerAddress(membership.AddressOf(n.cfg.ID)), &request, &response)
	if err != nil {
		n.logger.Warn("a server cannot reach its own peer port", "error", err)
	}
}
