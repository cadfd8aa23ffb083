package transport

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/appendrpc"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/fault"
)

// The leader's side: the methods that raft's replication and heartbeat goroutines call.

// appendDialer returns the function that makes connections for AppendEntries.
func appendDialer(m *mux.Mux, timeout time.Duration) func(raft.ServerAddress) (net.Conn, error) {
	return func(target raft.ServerAddress) (net.Conn, error) {
		c, err := m.DialMember(mux.KindAppend, string(target), timeout)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// AppendEntriesPipeline is refused: a pipeline can wedge for good after one failed write at the
// follower (hashicorp/raft issue 612), and every answer has to pass AppendEntries.
func (t *Transport) AppendEntriesPipeline(
	raft.ServerID, raft.ServerAddress,
) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries is called by raft's replication and heartbeat goroutines.
func (t *Transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	if t.stopped() {
		return raft.ErrTransportShutdown
	}
	t.persistTerm()
	appendrpc.Fit(req)
	n := len(req.Entries)
	for {
		t.count.appendEntries(n, isHeartbeat(req))
		if t.overlap != nil {
			if err := t.overlap.stalled(); err != nil {
				t.count.stalls.Add(1)
				return err
			}
		}
		if n > 0 && fault.On(fault.AckBeforeQuorum) {
			late := *req
			t.run(func() {
				_ = t.appends.Call(target, &late, &raft.AppendEntriesResponse{})
			})
			resp.Term, resp.Success, resp.LastLog = req.Term, true, req.Entries[n-1].Index
			return nil
		}
		if isHeartbeat(req) {
			err := t.call(target, req, resp)
			if err == nil {
				t.retry.reached(id)
			}
			return err
		}
		err := t.replicate(id, target, req, resp)
		if err == nil {
			break
		}
		again := t.retry.wait(id, req.Term)
		if _, declined := errors.AsType[*appendrpc.DeclinedError](err); declined || !again {
			return err
		}
	}
	if resp.Success && n > 0 && t.overlap != nil {
		return t.overlap.waitAsLeader(req.Entries[n-1].Index)
	}
	return nil
}

func (t *Transport) call(
	target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	if err := t.appends.Call(target, req, resp); err != nil {
		return err
	}
	return t.checkTerm(resp.Term)
}

// isHeartbeat reports whether raft sent req as a heartbeat. raft does not mark them, but its
// heartbeats alone have neither entries nor a previous entry nor a commit index.
func isHeartbeat(req *raft.AppendEntriesRequest) bool {
	return len(req.Entries) == 0 && req.PrevLogEntry == 0 && req.LeaderCommitIndex == 0
}

// replicate sends a request other than a heartbeat, once.
func (t *Transport) replicate(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	var f *follower
	if t.push != nil {
		f = t.push.sending(id, target, req)
	}
	err := t.call(target, req, resp)
	if f != nil {
		t.push.answered(f, req, resp, err)
	}
	t.receivers.appended(id, len(req.Entries), err == nil && resp.Success)
	return err
}

// RequestVote is called by raft on a goroutine for each other voter.
func (t *Transport) RequestVote(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	runtime.Gosched() // let raft write its own vote, so that vote and term share one write
	t.persistTerm()
	err := t.NetworkTransport.RequestVote(id, target, req, resp)
	if err == nil {
		err = t.checkTerm(resp.Term)
	}
	if t.failover != nil {
		t.failover.noteAnswer(err == nil && resp.Granted)
	}
	return err
}

// RequestPreVote is called by raft on a goroutine for each other voter.
func (t *Transport) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	if err := t.NetworkTransport.RequestPreVote(id, target, req, resp); err != nil {
		return err
	}
	return t.checkTerm(resp.Term)
}

// InstallSnapshot is called by raft's replication goroutines.
func (t *Transport) InstallSnapshot(
	id raft.ServerID, target raft.ServerAddress,
	req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	t.receivers.sending(id, req.Term)
	err := (&outgoing{t: t, id: id, target: target, req: req, data: data}).send(resp)
	if err == nil {
		err = t.checkTerm(resp.Term)
	}
	if err != nil || !resp.Success {
		t.receivers.forget(id)
	}
	if err != nil {
		t.retry.wait(id, req.Term)
	}
	return err
}

// maxAppendEntries is how many entries raft puts into a request if it has them.
var maxAppendEntries = raft.DefaultConfig().MaxAppendEntries

// snapshotReceivers has the followers that were sent a snapshot and have not caught up since.
//
// A follower that needs entries which the log no longer has is sent a snapshot, and then needs the log
// from there on. If the leader shortens its log meanwhile, it has to send the next snapshot, and with a
// large state and many writes the next, without end. So the leader asks Transport.CatchingUp first.
type snapshotReceivers struct {
	mu   sync.Mutex               // protects the field below
	sent map[raft.ServerID]uint64 // the term of the snapshot
}

// sending notes that a follower is being sent a snapshot.
func (s *snapshotReceivers) sending(id raft.ServerID, term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[raft.ServerID]uint64{}
	}
	s.sent[id] = term
}

// appended notes how a request with entries ended. A request that was not full held all the rest of the
// log.
func (s *snapshotReceivers) appended(id raft.ServerID, entries int, success bool) {
	if success && entries >= maxAppendEntries {
		return
	}
	s.forget(id)
}

// forget notes that a follower has caught up, or cannot: one out of reach is not waited for.
func (s *snapshotReceivers) forget(id raft.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sent, id)
}

// any reports whether there is such a follower in a term.
func (s *snapshotReceivers) any(term uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.sent {
		if t == term {
			return true
		}
	}
	return false
}
