package transport

import (
	"io"

	"github.com/hashicorp/raft"
)

// snapshotGuard filters the leader's snapshots before raft sees them. Two faults of raft make
// it necessary.
//
// First, raft's follower installs any snapshot that arrives in its term, and then empties its log, if
// the store is monotonic. Such a snapshot may be old: the leader gave up on it long ago and it lay in
// the socket of a follower that was stopped or slow, or a server was removed and added again and the
// leader's goroutine for its former membership sent it. It takes entries away that this server has
// acknowledged since. If the leader dies then, the others may elect a server that never had them.
//
// So the guard answers a snapshot that holds nothing new: this server has it (Raft, extended version,
// section 7: a follower whose log has the snapshot's last entry keeps what follows it).
//
// Safety: what a snapshot holds is committed. If the entry at its last index has its last term, or was
// applied here, then this server holds the same up to there for good, and success is true.
//
// Second, raft lets a server install the leader's snapshot while it writes one of its own. Afterwards
// its newest is the one that was finished last, although that may be the older one (hashicorp/raft issue
// 248). The server's log then ends before what it has applied: it votes for others that lack what it has
// acknowledged, and it needs the leader's snapshot again, which holds nothing new, forever.
//
// So there is one at a time. The leader's snapshot waits for the server's own, and while it is
// installed the server begins none of its own, which would be superseded anyway.
//
// INVARIANT the token belongs to a snapshot that raft writes or installs. The server's own gives it
// back when raft has noted that snapshot (raft.FSMSnapshot's Release), the leader's when raft has
// answered.
type snapshotGuard struct {
	// set at construction
	link *raftLink
	log  raft.LogStore

	token chan struct{} // has room for one
}

func newSnapshotGuard(link *raftLink, log raft.LogStore) *snapshotGuard {
	return &snapshotGuard{link: link, log: log, token: make(chan struct{}, 1)}
}

func (g *snapshotGuard) tryAcquire() bool {
	select {
	case g.token <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g *snapshotGuard) release() { <-g.token }

// receive delivers a snapshot of the leader to raft when no other is written or installed. It does not
// wait for that: other requests pass meanwhile.
func (g *snapshotGuard) receive(rpc raft.RPC, req *raft.InstallSnapshotRequest) {
	if g.answer(rpc, req) {
		return
	}
	g.link.run(func() {
		select {
		case g.token <- struct{}{}:
		case <-g.link.done:
			return
		}
		if g.answer(rpc, req) { // it was new when it arrived, and may no longer be
			g.release()
			return
		}
		rpc.RespChan = g.link.intercept(rpc.RespChan, func(*raft.RPCResponse) { g.release() })
		g.link.deliver(rpc)
	})
}

// answer answers a snapshot that holds nothing new, and returns false for any other.
func (g *snapshotGuard) answer(rpc raft.RPC, req *raft.InstallSnapshotRequest) bool {
	r := g.link.raft.Load()
	if r == nil || r.State() != raft.Follower || req.Term != r.CurrentTerm() || !g.holds(r, req) {
		return false
	}
	g.link.count.stale.Add(1)
	return g.link.run(func() {
		_, err := io.Copy(io.Discard, rpc.Reader) // the next RPC on the connection follows it
		rpc.Respond(&raft.InstallSnapshotResponse{Term: req.Term, Success: err == nil}, err)
	})
}

// holds reports whether this server has all that a snapshot has.
func (g *snapshotGuard) holds(r *raft.Raft, req *raft.InstallSnapshotRequest) bool {
	if req.LastLogIndex <= r.AppliedIndex() {
		return true
	}
	var last raft.Log
	return g.log.GetLog(req.LastLogIndex, &last) == nil && last.Term == req.LastLogTerm
}
