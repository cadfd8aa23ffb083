package transport

import (
	"cmp"
	"strconv"
	"time"

	"github.com/hashicorp/raft"
)

// majorityAgrees asks the other voters for a pre-vote and reports whether need of them, this server
// included, grant it in time, and before another server gets this one's promise. A voter that has
// not answered the last one is not asked again.
func (d *detector) majorityAgrees(
	r *raft.Raft, term uint64, others []raft.Server, need int, within time.Duration, broken <-chan struct{},
) bool {
	req := &raft.RequestPreVoteRequest{RPCHeader: d.header(), Term: term + 1}
	req.LastLogIndex, req.LastLogTerm = d.lastEntry(r)
	answers := make(chan bool, len(others))
	asked := 0
	for _, s := range others {
		if d.ask(s, req, answers) {
			asked++
		}
	}
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for got := 1; ; {
		if got >= need {
			return true
		}
		if asked == 0 {
			return false
		}
		select {
		case granted := <-answers:
			asked--
			if granted {
				got++
			}
		case <-timeout.C:
			return false
		case <-broken:
			return false
		case <-d.link.done:
			return false
		}
	}
}

func (d *detector) ask(
	s raft.Server, req *raft.RequestPreVoteRequest, answers chan<- bool,
) bool {
	d.mu.Lock()
	pending := d.asking[s.ID]
	d.asking[s.ID] = true
	d.mu.Unlock()
	if pending {
		return false
	}
	return d.link.run(func() {
		d.link.count.asks.Add(1)
		var resp raft.RequestPreVoteResponse
		err := d.net.RequestPreVote(s.ID, s.Address, req, &resp)
		d.mu.Lock()
		delete(d.asking, s.ID)
		d.mu.Unlock()
		answers <- err == nil && resp.Granted
	})
}

// withdraw tells the others that this server does not use their promises, so that they can give them to another: it
// asks for a pre-vote in term 0, which no server grants.
func (d *detector) withdraw(others []raft.Server) {
	for _, s := range others {
		d.link.run(func() {
			var resp raft.RequestPreVoteResponse
			_ = d.net.RequestPreVote(s.ID, s.Address, &raft.RequestPreVoteRequest{RPCHeader: d.header()}, &resp)
		})
	}
}

// receivePreVote refuses a pre-vote if this server has promised itself to another, answers it if this server
// suspects its leader, whom raft would stick to, and hands it to raft otherwise.
func (d *detector) receivePreVote(rpc raft.RPC, req *raft.RequestPreVoteRequest) {
	r, asker := d.link.raft.Load(), raft.ServerID(req.ID)
	if r == nil || !d.voter(asker) {
		d.link.deliver(rpc)
		return
	}
	if req.Term == 0 {
		d.refused(asker)
		d.answerPreVote(rpc, req, false)
		return
	}
	leader := d.leaderElsewhere(r)
	if leader == "" || string(req.Addr) == string(leader) || d.suspects(r, leader) {
		d.decide(r, rpc, req, leader)
		return
	}
	d.link.run(func() { // the asker has noticed something
		if d.dead(leader) {
			d.look()
			d.setSuspect(leader, r.CurrentTerm())
		}
		d.decide(r, rpc, req, leader)
	})
}

// decide answers a pre-vote, or has raft answer it.
func (d *detector) decide(r *raft.Raft, rpc raft.RPC, req *raft.RequestPreVoteRequest, leader raft.ServerAddress) {
	asker, newer := raft.ServerID(req.ID), d.compareLogs(req, r)
	if !d.promiseFor(asker, newer > 0 || newer == 0 && ranksBefore(asker, d.id)) {
		d.answerPreVote(rpc, req, false)
		return
	}
	if leader == "" || string(req.Addr) == string(leader) || !d.suspects(r, leader) {
		rpc.RespChan = d.link.intercept(rpc.RespChan, func(resp *raft.RPCResponse) {
			if a, ok := resp.Response.(*raft.RequestPreVoteResponse); !ok || !a.Granted {
				d.refused(asker)
			}
		})
		d.link.deliver(rpc)
		return
	}
	granted := newer >= 0 && req.Term >= r.CurrentTerm()
	if granted {
		d.link.count.grants.Add(1)
	} else {
		d.refused(asker)
	}
	d.answerPreVote(rpc, req, granted)
}

func (d *detector) answerPreVote(rpc raft.RPC, req *raft.RequestPreVoteRequest, granted bool) {
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: d.header(), Term: req.Term, Granted: granted}, nil)
}

// promiseFor gives a server that asks for a pre-vote this server's promise, unless another has it. This server
// itself may have it, and takes it back for a better candidate until its own campaign begins. A server that asks
// again gets no more time: candidates of raft's own timer give no promise back and may ask again before it ends, so
// a few of them, each without a majority, would keep one another waiting forever.
func (d *detector) promiseFor(asker raft.ServerID, better bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	yields := d.promise.to == d.id && !d.promise.campaigning && better
	if d.promise.keptFor(asker) && !yields {
		return false
	}
	if !d.promise.madeTo(asker) {
		d.promise.give(asker, d.promiseTimeLocked())
	}
	return true
}

// refused takes a promise back from a server whose request was refused.
func (d *detector) refused(asker raft.ServerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.promise.release(asker)
}

// noteAnswer counts the voters that have not granted this server's request for their votes. When it can no longer
// win, the next candidate need not wait for it.
func (d *detector) noteAnswer(granted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if granted || d.promise.to != d.id || !d.promise.campaigning {
		return
	}
	if d.promise.refusals++; d.promise.refusals > d.promise.spare {
		d.promise.release(d.id)
	}
}

// receiveVote gives a candidate this server's promise while raft decides about its vote, and longer if it gets
// that.
func (d *detector) receiveVote(rpc *raft.RPC, req *raft.RequestVoteRequest) {
	r, candidate := d.link.raft.Load(), raft.ServerID(req.ID)
	if r == nil || req.Term < r.CurrentTerm() || !d.voter(candidate) {
		return
	}
	if leader := d.leaderElsewhere(r); leader != "" && d.suspects(r, leader) {
		// raft would refuse, because it has a leader. A candidate of raft's own timer does not set this flag, and
		// has this server's pre-vote.
		req.LeadershipTransfer = true
	}
	promise := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.promise.give(candidate, d.promiseTimeLocked())
	}
	promise()
	rpc.RespChan = d.link.intercept(rpc.RespChan, func(resp *raft.RPCResponse) {
		if v, ok := resp.Response.(*raft.RequestVoteResponse); ok && v.Granted {
			promise()
		} else {
			d.refused(candidate)
		}
	})
}

func (d *detector) voter(id raft.ServerID) bool {
	for _, s := range d.link.servers() {
		if s.ID == id {
			return s.Suffrage == raft.Voter
		}
	}
	return false
}

// compareLogs is positive if the asker's log is newer than this server's, negative if it is older.
func (d *detector) compareLogs(req *raft.RequestPreVoteRequest, r *raft.Raft) int {
	index, term := d.lastEntry(r)
	return cmp.Or(cmp.Compare(req.LastLogTerm, term), cmp.Compare(req.LastLogIndex, index))
}

// lastEntry is the index and term of the last entry that raft will have when it has finished its present work,
// including one that is being written, since raft will compare with that when it votes.
func (d *detector) lastEntry(r *raft.Raft) (index, term uint64) {
	index, term = lastEntry(r)
	if written, err := d.log.LastIndex(); err == nil && written > index {
		var last raft.Log
		if d.log.GetLog(written, &last) == nil {
			return last.Index, last.Term
		}
	}
	return index, term
}

// lastEntry is the index and term of the last entry, by raft's own rule (getLastEntry): of the log
// or of the snapshot, whichever reaches further. Stats is the only accessor of raft's that reads
// index and term under one lock and that knows the snapshot's term; LastIndex and a read of the log
// store would race with a truncation and miss the part that only the snapshot has. It costs a few
// microseconds, and is called a few times when a leader dies.
func lastEntry(r *raft.Raft) (index, term uint64) {
	s := r.Stats()
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(s[key], 10, 64)
		if err != nil {
			panic("transport: invariant broken: raft's Stats has no number " + key)
		}
		return n
	}
	index, term = number("last_log_index"), number("last_log_term")
	if snap := number("last_snapshot_index"); snap > index {
		index, term = snap, number("last_snapshot_term")
	}
	return index, term
}

// promise keeps two servers from campaigning against each other. A server promises one other that it will
// neither campaign nor grant a pre-vote to a third for a while. Granting a pre-vote promises, and so does a
// request for a vote: raft has a new term by then. Asking for pre-votes is a promise to oneself, which is
// taken back for a better candidate until a majority has agreed.
//
// A majority of promises is needed for a campaign, two majorities share a server, and that one has promised only
// one of them. So while promises last no second server campaigns. They end by themselves, in case the
// candidate dies, too, and to ask for pre-votes again does not prolong them. It is no lease: if one ends too early
// the worst is a second election.
//
// The detector's mutex protects it.
type promise struct {
	to    raft.ServerID // empty: no server
	until time.Time
	// campaigning is set when to is this server and a majority has agreed: it is not taken back then.
	campaigning     bool
	spare, refusals int           // of such a campaign: votes that it can do without, and those that it will not get
	broken          chan struct{} // closed when another gets the promise
}

// keptFor reports whether another server than id has the promise.
func (p *promise) keptFor(id raft.ServerID) bool {
	return p.to != "" && p.to != id && time.Now().Before(p.until)
}

// madeTo reports whether id has the promise.
func (p *promise) madeTo(id raft.ServerID) bool { return p.to == id && time.Now().Before(p.until) }

// give gives the promise to id, even if another server has it.
func (p *promise) give(id raft.ServerID, d time.Duration) {
	if p.to != id || p.broken == nil {
		if p.broken != nil {
			close(p.broken)
		}
		p.to, p.campaigning, p.broken = id, false, make(chan struct{})
	}
	p.until = time.Now().Add(d)
}

// release ends the promise if id has it.
func (p *promise) release(id raft.ServerID) {
	if p.to == id && p.broken != nil {
		close(p.broken)
		*p = promise{}
	}
}
