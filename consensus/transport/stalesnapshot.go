package transport

import (
	"io"

	"github.com/hashicorp/raft"
)

// raft's follower installs whatever snapshot arrives in its term, and then empties its log, if the
// store is monotonic. One that the leader gave up on long ago, and that lay in the socket of a
// follower that was stopped or slow, or one from a leader's goroutine for a server that was removed
// and taken in again, so takes entries away that this server has acknowledged since. If the leader
// dies then, the others may elect somebody who has never had them.
//
// So a snapshot of what this server already holds is answered here: it has got it (Raft, extended
// version, section 7: a follower whose log has the snapshot's last entry keeps what follows it).
//
// Safety: what a snapshot holds is committed. If the entry at its last index has its last term, or
// was applied here, then this server holds the same up to there for good, and success is true.

// answerSnapshot answers a snapshot that would tell this server nothing new.
func (t *Transport) answerSnapshot(rpc raft.RPC, req *raft.InstallSnapshotRequest) bool {
	r := t.raft.Load()
	if r == nil || r.State() != raft.Follower || req.Term != r.CurrentTerm() || !t.holds(r, req) {
		return false
	}
	t.count.stale.Add(1)
	return t.group.run(func() {
		_, err := io.Copy(io.Discard, rpc.Reader) // what follows on the connection is the next RPC
		rpc.Respond(&raft.InstallSnapshotResponse{Term: req.Term, Success: err == nil}, err)
	})
}

// holds reports whether this server has all that a snapshot has.
func (t *Transport) holds(r *raft.Raft, req *raft.InstallSnapshotRequest) bool {
	if req.LastLogIndex <= r.AppliedIndex() {
		return true
	}
	var last raft.Log
	return t.log != nil && t.log.GetLog(req.LastLogIndex, &last) == nil && last.Term == req.LastLogTerm
}
