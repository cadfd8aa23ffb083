package transport

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Commit push: a follower of hashicorp/raft learns the commit index with the next entry or after
// CommitTimeout. Here, when the leader's state machine has applied something, each follower gets
// an empty AppendEntries at once.
//
// For each follower, in the leader's current term:
//
//	ackIdx, ackTerm  last entry of a request that it answered with Success
//	                 (its PrevLogEntry when the request had no entries)
//	sent             highest commit index that it has been sent
//	c                min(index applied by our own state machine, ackIdx)
//
// A push is the request {Term, Leader and header of raft's last request; PrevLogEntry = ackIdx,
// PrevLogTerm = ackTerm, no entries, LeaderCommitIndex = c}. It is sent iff this server leads, the
// term is still the current one, raft's last request succeeded, c > sent, and raft itself is not
// about to send the same (no request in flight and LastIndex == ackIdx; otherwise the answer to
// that request leads here again, so no commit is missed).
//
// Why it is safe:
//
//  1. It is the message that raft itself sends after CommitTimeout (setupAppendEntries with
//     nextIndex = ackIdx+1 and no entries). Raft tolerates AppendEntries that are delayed, lost,
//     doubled and reordered, so a further copy at another moment is no new behaviour.
//  2. INVARIANT c <= ackIdx = PrevLogEntry. hashicorp/raft's follower commits up to
//     min(LeaderCommitIndex, its own last index), not up to the last entry that the message
//     covers, as in the paper; a push with c > PrevLogEntry could commit a stale tail. With
//     c <= PrevLogEntry the check of PrevLogEntry and PrevLogTerm covers everything up to c, by log
//     matching.
//  3. INVARIANT c <= applied. c comes from this server's state machine, so it is committed for
//     good; acknowledgements are never counted here.
//  4. A push is not a heartbeat: c >= 1, and a heartbeat has LeaderCommitIndex = 0.
//  5. When the leader changes between capture and send, the push carries the old term: a follower
//     in a newer one refuses it, a follower still in the old one gets what a delayed message of
//     that leader would have been.
//  6. INVARIANT no match index, no lease, no VerifyLeader vote comes from a push: it has no answer.
//     If a push is lost, or refused because it came late, raft's next request sends the same,
//     after CommitTimeout at the latest.
//
// The commit index must not be patched into heartbeats instead: a failed PrevLogEntry check would
// make VerifyLeader step the leader down.
type pusher struct {
	// set at construction
	link *raftLink
	send sendFunc // appendrpc.Client.Notify; tests wrap it

	// own synchronisation
	applied atomic.Uint64 // highest index that our own state machine has applied

	mu        sync.Mutex // protects the field below and the followers in it
	followers map[raft.ServerID]*follower
}

type sendFunc func(raft.ServerAddress, *raft.AppendEntriesRequest) error

// follower has the requests that raft itself has sent to one follower in one term, and the answers. Its
// fields after stop are protected by pusher.mu.
type follower struct {
	// set at construction
	wake chan struct{} // room for one
	stop chan struct{} // closed when the server has left the configuration

	addr    raft.ServerAddress
	header  raft.RPCHeader
	leader  []byte
	term    uint64
	ackIdx  uint64
	ackTerm uint64
	sent    uint64
	busy    bool // a request of raft's is in flight
	ok      bool // raft's last request succeeded
}

func newPusher(link *raftLink, send sendFunc) *pusher {
	return &pusher{link: link, send: send, followers: map[raft.ServerID]*follower{}}
}

// sending notes a request of raft's before it is sent. It returns nil when the follower is not to be
// pushed to: it has left the configuration, or the request is of a term that is over.
func (p *pusher) sending(
	id raft.ServerID, addr raft.ServerAddress, req *raft.AppendEntriesRequest,
) *follower {
	p.mu.Lock()
	f := p.followers[id]
	p.mu.Unlock()
	if f == nil && !p.link.member(id) {
		return nil // raft's last request to a removed server must not start a pusher again
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f = p.followers[id]; f == nil {
		f = &follower{wake: make(chan struct{}, 1), stop: make(chan struct{})}
		if !p.link.run(func() { p.loop(f) }) {
			return nil
		}
		p.followers[id] = f
	}
	if req.Term < f.term {
		return nil
	}
	if req.Term > f.term {
		f.term, f.ackIdx, f.ackTerm, f.sent, f.ok = req.Term, 0, 0, 0, false
	}
	f.addr, f.header, f.busy = addr, req.RPCHeader, true
	f.leader = req.Leader //nolint:staticcheck // raft still sends and checks it
	return f
}

// answered notes how the follower answered a request of raft's.
func (p *pusher) answered(
	f *follower, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse, err error,
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if req.Term != f.term {
		return
	}
	f.busy = false
	f.ok = err == nil && resp.Success && resp.Term == req.Term
	if !f.ok {
		return
	}
	idx, term := req.PrevLogEntry, req.PrevLogTerm
	if n := len(req.Entries); n > 0 {
		idx, term = req.Entries[n-1].Index, req.Entries[n-1].Term
	}
	if idx > f.ackIdx {
		f.ackIdx, f.ackTerm = idx, term
	}
	f.sent = max(f.sent, min(req.LeaderCommitIndex, idx))
	if f.sent < min(p.applied.Load(), f.ackIdx) {
		f.tryPush()
	}
}

// tryPush wakes the follower's pusher.
func (f *follower) tryPush() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// committed is Transport.Committed.
func (p *pusher) committed(index uint64) {
	if index <= p.applied.Load() {
		return
	}
	p.applied.Store(index) // the state machine's goroutine is the only writer
	if r := p.link.raft.Load(); r == nil || r.State() != raft.Leader {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.followers {
		f.tryPush()
	}
}

// keep ends all pushers but those of servers.
func (p *pusher) keep(servers []raft.Server) {
	stay := make(map[raft.ServerID]bool, len(servers))
	for _, s := range servers {
		stay[s.ID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, f := range p.followers {
		if !stay[id] {
			close(f.stop)
			delete(p.followers, id)
		}
	}
}

// loop pushes to one follower, one push at a time.
func (p *pusher) loop(f *follower) {
	for {
		select {
		case <-p.link.done:
			return
		case <-f.stop:
			return
		case <-f.wake:
		}
		req, addr := p.request(f)
		if req == nil {
			continue
		}
		p.link.count.pushes.Add(1)
		err := p.send(addr, req)
		p.mu.Lock()
		switch {
		case err != nil:
			p.link.count.pushFailures.Add(1)
			f.ok = false // until raft's own next success, so that a dead server gets no more of them
		case req.Term == f.term:
			f.sent = max(f.sent, req.LeaderCommitIndex)
		}
		p.mu.Unlock()
	}
}

// request returns the push, or nil when it would be nothing new or raft is about to send the same.
func (p *pusher) request(f *follower) (*raft.AppendEntriesRequest, raft.ServerAddress) {
	r := p.link.raft.Load()
	if r == nil || r.State() != raft.Leader {
		return nil, ""
	}
	last, term := r.LastIndex(), r.CurrentTerm()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := min(p.applied.Load(), f.ackIdx)
	switch {
	case term != f.term || !f.ok || c <= f.sent:
		return nil, ""
	case f.busy || last > f.ackIdx:
		p.link.count.pushSkips.Add(1)
		return nil, "" // the answer to raft's own request leads here again
	}
	return &raft.AppendEntriesRequest{
		RPCHeader: f.header, Term: f.term, Leader: f.leader, //nolint:staticcheck // as raft's own requests
		PrevLogEntry: f.ackIdx, PrevLogTerm: f.ackTerm, LeaderCommitIndex: c,
	}, f.addr
}
