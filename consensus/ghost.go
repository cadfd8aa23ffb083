package consensus

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport"
)

// ghostLimit, in election timeouts, is how long a candidate may name a leader.
// A campaign that skips the pre-vote takes up to two, and in the one after it a
// leader that lives makes the candidate its follower.
const ghostLimit = 3

// exorcise frees a candidate of a leader that has gone. In hashicorp/raft
// v1.7.3 a server that campaigns after a TimeoutNow (a transfer of leadership,
// or a fast election) and then hears from the winner of the same term notes it
// as its leader, but stays a candidate (Raft.appendEntries,
// candidateFromLeadershipTransfer). When that leader dies now, nothing makes the
// candidate forget it, since only a follower's heartbeat timeout does, and for
// ever it refuses all others its vote "since we have a leader". If its own log
// is too short to win, a majority that is up elects nobody.
//
// The remedy is a TimeoutNow from itself: raft forgets the leader, stays a
// candidate, and asks for pre-votes in its next campaign as ever. Safety depends
// on none of this.
func (n *Node) exorcise() {
	look := time.NewTicker(n.cfg.ElectionTimeout)
	defer look.Stop()
	var since time.Time // when a candidate was first seen with this leader
	var last raft.ServerID
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-look.C:
		}
		_, leader := n.raft.LeaderWithID()
		switch {
		case leader == "" || n.raft.State() != raft.Candidate:
			last = ""
			continue
		case leader != last:
			since, last = time.Now(), leader
			continue
		case time.Since(since) < ghostLimit*n.cfg.ElectionTimeout:
			continue
		}
		last = ""
		n.logger.Warn("raft holds on to a leader that it hears nothing from; making it forget",
			"leader", leader)
		own := transport.RaftID(uint64(n.cfg.ID))
		request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(own), Addr: []byte(addressOf(n.cfg.ID)),
		}}
		var response raft.TimeoutNowResponse
		err := n.transport.TimeoutNow(own, raft.ServerAddress(addressOf(n.cfg.ID)), &request, &response)
		if err != nil {
			n.logger.Warn("a server cannot reach its own peer port", "error", err)
		}
	}
}
