package consensus

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
)

// What goes wrong with leaders, and what this server does about it.

// hungDisk cuts the connections of a leader whose disk hangs, so that the others elect.
type hungDisk struct {
	n   *Node
	cut bool // the connections of raft are cut
}

// check is called at every tick.
func (h *hungDisk) check(now leadership.State) {
	n, waiting := h.n, h.n.disk.Waiting()
	if n.disk.Alone() {
		return
	}
	switch hangs := waiting > storage.HangLimit; {
	case hangs && !h.cut && now.Role == leadership.Leader:
		h.cut = true
		n.logger.Error("the disk does not answer; leaving leadership to the others", "waiting", waiting)
		n.mux.CutRaft()
	case !hangs && h.cut:
		h.cut = false
		n.logger.Info("the disk answers again")
		n.mux.RestoreRaft()
	}
}

// staleLimit, in election timeouts, is how long a candidate may have a leader.
// A campaign that skips the pre-vote takes up to two, and in the one after it a
// leader that lives makes the candidate its follower.
const staleLimit = 3

// staleLeader frees a candidate of a leader that has failed. In hashicorp/raft
// v1.7.3 a server that campaigns after a TimeoutNow (a transfer of leadership,
// or a fast election) and then hears from the winner of the same term notes it
// as its leader, but stays a candidate (Raft.appendEntries,
// candidateFromLeadershipTransfer). When that leader fails now, nothing clears it:
// only a follower's heartbeat timeout does. So the candidate keeps it, and grants no
// vote, "since we have a leader". If its own log is too short to win, a majority that
// is up elects no leader.
//
// The remedy is a TimeoutNow from itself: raft forgets the leader, stays a
// candidate, and asks for pre-votes in its next campaign as ever. Safety depends
// on none of this.
type staleLeader struct {
	n     *Node
	id    state.ServerID // of a candidate
	since time.Time      // when the candidate was first seen with this leader; zero: it is none, or has none
}

// check is called at every tick.
func (s *staleLeader) check(now leadership.State) {
	n := s.n
	switch {
	case now.Leader == state.NoServer || now.Role != leadership.Candidate:
		s.since = time.Time{}
	case s.since.IsZero() || now.Leader != s.id:
		s.id, s.since = now.Leader, time.Now()
	case time.Since(s.since) >= staleLimit*n.cfg.ElectionTimeout:
		s.since = time.Time{}
		n.logger.Warn("raft keeps a leader that it hears nothing from; clearing it", "leader", now.Leader)
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

// refusals is for how long raft has refused every entry of one leadership because of a transfer. It does
// so for at most an election timeout, unless it has forgotten that the transfer has ended
// (hashicorp/raft issue 696): then only a restart helps.
type refusals struct {
	mu          sync.Mutex // protects the fields below
	first, last time.Time  // of the refusals in a row; zero: none
}

// note counts a refusal and returns how long ago the first one in a row was. Refused commands are sent again
// within a fraction of the limit, so after a longer pause another row begins.
func (r *refusals) note(now time.Time, limit time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first.IsZero() || now.Sub(r.last) > limit {
		r.first = now
	}
	r.last = now
	return now.Sub(r.first)
}

// end ends the row: raft has taken an entry.
func (r *refusals) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = time.Time{}
}

// noteRefusal ends the server when raft has refused every entry of a leadership for too long.
func noteRefusal(n *Node, row *refusals, err error) {
	limit := 4*n.cfg.ElectionTimeout + time.Second
	switch {
	case err == nil:
		row.end()
	case errors.Is(err, raft.ErrLeadershipTransferInProgress) && row.note(time.Now(), limit) > limit:
		n.fatal(errors.New("raft refuses every entry since a transfer of leadership failed; " +
			"the server must be started again"))
	}
}
