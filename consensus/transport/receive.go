package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/appendrpc"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// The follower's side: messages from other servers, on their way to raft's main loop.

// SetHeartbeatHandler does nothing: heartbeats take raft's main loop like every other RPC. The
// fast path would change term and state beside the main loop (hashicorp/raft issue 695), and the
// ideas of this package rely on their changing nowhere else.
func (t *Transport) SetHeartbeatHandler(func(raft.RPC)) {}

// Consumer is where raft's main loop receives RPCs.
func (t *Transport) Consumer() <-chan raft.RPC { return t.rpcs }

// pump receives the RPCs of the NetworkTransport: votes and snapshots.
func (t *Transport) pump() {
	in := t.NetworkTransport.Consumer()
	for {
		select {
		case <-t.done:
			return
		case rpc := <-in:
			t.receive(rpc)
		}
	}
}

// accept serves each connection of a kind on a goroutine of its own.
func (t *Transport) accept(kind mux.Kind, serve func(*mux.Conn)) {
	for {
		c, err := t.mux.Accept(kind)
		if err != nil {
			return
		}
		if !t.run(func() { serve(c) }) {
			_ = c.Close()
			return
		}
	}
}

func (t *Transport) serveAppends(c *mux.Conn) {
	defer func() { _ = c.Close() }()
	from := RaftID(c.ServerID())
	err := appendrpc.Serve(c, func(rpc raft.RPC) { t.receiveFrom(from, rpc) }, t.persistTerm, t.done)
	if t.stopped() {
		return
	}
	const ended = "append connection ended"
	level, leftOut := slog.LevelDebug, 0
	if errors.Is(err, appendrpc.ErrMalformed) {
		var pass bool
		if pass, leftOut = t.repeats.Pass(ended); pass {
			level = slog.LevelWarn
		}
	}
	t.logger.Log(context.Background(), level, ended, "server", c.ServerID(), "error", err, "left_out", leftOut)
}

// receiveFrom is receive for an RPC that arrived on the connection of a server, which must not speak for
// another one.
func (t *Transport) receiveFrom(from raft.ServerID, rpc raft.RPC) {
	if x, ok := rpc.Command.(raft.WithRPCHeader); ok && string(x.GetRPCHeader().ID) != string(from) {
		const refused = "a request that names another server as its sender is refused"
		if pass, leftOut := t.repeats.Pass(refused); pass {
			t.logger.Warn(refused, "server", from, "named", string(x.GetRPCHeader().ID), "left_out", leftOut)
		}
		rpc.Respond(nil, errors.New(refused))
		return
	}
	t.receive(rpc)
}

// receive delivers an RPC from another server to raft. On the way it refuses impossible terms, delays
// acknowledgements of entries that may not be on this server's disk, answers snapshots that hold nothing new
// and pre-votes about a leader that this server suspects, and notes which servers campaign.
func (t *Transport) receive(rpc raft.RPC) {
	if err := t.checkRequest(rpc.Command); err != nil {
		const refused = "a request of another server is refused"
		if pass, leftOut := t.repeats.Pass(refused); pass {
			t.logger.Warn(refused, "error", err, "left_out", leftOut)
		}
		rpc.Respond(nil, err)
		return
	}
	switch cmd := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		t.noteLeaderLog(cmd.PrevLogEntry)
		if n := len(cmd.Entries); n > 0 && t.overlap != nil {
			rpc.RespChan = t.overlap.delay(rpc.RespChan, cmd.Entries[n-1].Index)
		}
		t.snapshots.skipHeld(cmd)
	case *raft.InstallSnapshotRequest:
		t.snapshots.receive(rpc, cmd)
		return
	case *raft.RequestPreVoteRequest:
		if t.failover != nil {
			t.failover.receivePreVote(rpc, cmd)
			return
		}
	case *raft.RequestVoteRequest:
		rpc.RespChan = t.intercept(rpc.RespChan, func(*raft.RPCResponse) {})
		if t.failover != nil {
			t.failover.receiveVote(&rpc, cmd)
		}
	}
	t.deliver(rpc)
}

// noteLeaderLog notes an entry that a leader has in its log.
func (t *Transport) noteLeaderLog(index uint64) {
	for {
		known := t.leaderLog.Load()
		if index <= known || t.leaderLog.CompareAndSwap(known, index) {
			return
		}
	}
}

// LeaderLog is the last entry that leaders have told this server to be in their logs, since its start. The first
// request to a server that is added names the entry that adds it, or a later one.
func (t *Transport) LeaderLog() uint64 { return t.leaderLog.Load() }

// Terms of other servers are checked before raft believes them: it takes any higher one as its own at once and
// for good. One message with the highest term of all left an ensemble without leaders forever.
const (
	// maxTerm bounds terms: they are the high half of zxids, of which clients know 31 bits.
	maxTerm = 1<<31 - 1
	// maxTermStep is how far a term may be ahead of this server's. Each election takes one.
	maxTermStep = 1 << 20
)

// checkTerm returns why raft must not see a term. A server that has no log yet may have missed any number of elections.
func (l *raftLink) checkTerm(term uint64) error {
	if term > maxTerm {
		return fmt.Errorf("transport: term %d is not one: terms end at %d", term, maxTerm)
	}
	r := l.raft.Load()
	if r == nil {
		return nil
	}
	if own := r.CurrentTerm(); term > own+maxTermStep && r.LastIndex() > 0 {
		return fmt.Errorf("transport: term %d is more than %d ahead of %d, this server's", term, maxTermStep, own)
	}
	return nil
}

// checkRequest returns why raft must not see a request.
func (l *raftLink) checkRequest(command any) error {
	term, lasting := uint64(0), uint64(0) // the sender's, and the newest in a log
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		term, lasting = c.Term, c.PrevLogTerm
		for _, e := range c.Entries {
			lasting = max(lasting, e.Term)
		}
	case *raft.RequestVoteRequest:
		term, lasting = c.Term, c.LastLogTerm
	case *raft.RequestPreVoteRequest:
		term, lasting = c.Term, c.LastLogTerm
	case *raft.InstallSnapshotRequest:
		term, lasting = c.Term, c.LastLogTerm
	}
	if lasting > term {
		return fmt.Errorf("transport: an entry of term %d is told in term %d", lasting, term)
	}
	return l.checkTerm(term)
}

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

// skipHeld drops the first entries of a request that this server has already, if its log lacks the one before them,
// because a snapshot has taken its place. raft looks for that one in the log alone, and refuses the request; the leader
// then sends the snapshot, which this server has, and the same request again, without end. Two logs that have an entry
// of the same index and term have the same entries before it, too, so the request means the same without them.
func (g *snapshotGuard) skipHeld(req *raft.AppendEntriesRequest) {
	r := g.link.raft.Load()
	if r == nil || req.PrevLogEntry == 0 || req.PrevLogEntry >= r.LastIndex() {
		return // as always, unless something is sent again
	}
	var own raft.Log
	if g.log.GetLog(req.PrevLogEntry, &own) == nil {
		return
	}
	for applied := r.AppliedIndex(); len(req.Entries) > 0; req.Entries = req.Entries[1:] {
		e := req.Entries[0]
		if e.Index > applied && (g.log.GetLog(e.Index, &own) != nil || own.Term != e.Term) {
			return
		}
		req.PrevLogEntry, req.PrevLogTerm = e.Index, e.Term
	}
}
