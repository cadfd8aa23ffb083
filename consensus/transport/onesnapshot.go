package transport

import "github.com/hashicorp/raft"

// raft lets a server install the leader's snapshot while it writes one of its own, and then
// takes for its last the one that was finished last, although it may be the older
// (hashicorp/raft issue 248). The server's log then ends before what it has applied: it votes
// for others that lack what it has acknowledged, and it needs the leader's snapshot again, which
// answerSnapshot knows to be nothing new, for ever.
//
// So one at a time. The leader's waits for the server's own, and while it is installed none of
// its own begins; that one would have been superseded.
//
// INVARIANT the token in snapshots belongs to a snapshot that raft writes or installs. The
// server's own gives it back when raft has noted that snapshot (raft.FSMSnapshot's Release), the
// leader's when raft has answered.

// BeginSnapshot is to be called by the state machine when raft wants a snapshot of it. It
// reports false while one of the leader's is installed: then there shall be none. After true,
// EndSnapshot must follow.
func (t *Transport) BeginSnapshot() bool {
	select {
	case t.snapshots <- struct{}{}:
		return true
	default:
		return false
	}
}

// EndSnapshot is to be called when raft releases the snapshot that BeginSnapshot was about.
func (t *Transport) EndSnapshot() { <-t.snapshots }

// receiveSnapshot hands a snapshot of the leader's to raft when no other is written or
// installed. Nobody else's requests wait meanwhile.
func (t *Transport) receiveSnapshot(rpc raft.RPC, req *raft.InstallSnapshotRequest) {
	t.group.run(func() {
		select {
		case t.snapshots <- struct{}{}:
		case <-t.done:
			return
		}
		if t.answerSnapshot(rpc, req) { // what was new when it came need not be so any more
			t.EndSnapshot()
			return
		}
		rpc.RespChan = t.intercept(rpc.RespChan, func(*raft.RPCResponse) { t.EndSnapshot() })
		t.hand(rpc)
	})
}
