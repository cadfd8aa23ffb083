package transport

import (
	"strconv"
	"time"

	"github.com/hashicorp/raft"
)

// majorityAgrees asks the other voters for a pre-vote and reports whether need of them, this server
// included, grant it within askTimeout. A voter that has not answered the last one is not asked again.
func (d *detector) majorityAgrees(r *raft.Raft, others []raft.Server, need int) bool {
	req := &raft.RequestPreVoteRequest{RPCHeader: d.header(), Term: r.CurrentTerm() + 1}
	req.LastLogIndex, req.LastLogTerm = lastEntry(r)
	answers := make(chan bool, len(others))
	asked := 0
	for _, s := range others {
		if d.ask(s, req, answers) {
			asked++
		}
	}
	timeout := time.NewTimer(askTimeout)
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

// answerPreVote answers instead of raft iff this server has found its leader dead and the request comes
// from another voter whose term is not older. raft would refuse, because it has a leader.
func (d *detector) answerPreVote(rpc raft.RPC, req *raft.RequestPreVoteRequest) bool {
	r := d.link.raft.Load()
	if r == nil {
		return false
	}
	leader := d.leaderElsewhere(r)
	if leader == "" || !d.suspects(leader) || string(req.Addr) == string(leader) ||
		req.Term < r.CurrentTerm() || !d.voter(raft.ServerID(req.ID)) {
		return false
	}
	index, term := lastEntry(r)
	granted := req.LastLogTerm > term || req.LastLogTerm == term && req.LastLogIndex >= index
	if granted {
		d.link.count.grants.Add(1)
	}
	rpc.Respond(&raft.RequestPreVoteResponse{
		RPCHeader: d.header(), Term: req.Term, Granted: granted,
	}, nil)
	return true
}

func (d *detector) voter(id raft.ServerID) bool {
	for _, s := range d.link.servers() {
		if s.ID == id {
			return s.Suffrage == raft.Voter
		}
	}
	return false
}

// noteVote notes when raft votes for another server.
func (d *detector) noteVote(out chan<- raft.RPCResponse) chan<- raft.RPCResponse {
	return d.link.intercept(out, func(resp *raft.RPCResponse) {
		if v, ok := resp.Response.(*raft.RequestVoteResponse); ok && v.Granted {
			d.voted.Store(time.Now().UnixNano())
		}
	})
}

// lastEntry is the index and term of the last entry, by raft's own rule (getLastEntry): of the log
// or of the snapshot, whichever reaches further. Stats is the only accessor of raft's that reads
// index and term under one lock and that knows the snapshot's term; LastIndex and a read of the log
// store would race with a truncation and miss what only the snapshot has. It costs a few
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
