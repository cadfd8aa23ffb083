package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/appendrpc"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
)

// The follower's side: what other servers send, on its way to raft's main loop.

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

// acceptAppends serves each append connection of a leader on a goroutine of its own.
func (t *Transport) acceptAppends() {
	for {
		c, err := t.mux.Accept(mux.KindAppend)
		if err != nil {
			return
		}
		if !t.run(func() { t.serveAppends(c) }) {
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
		if n := len(cmd.Entries); n > 0 && t.overlap != nil {
			rpc.RespChan = t.overlap.delay(rpc.RespChan, cmd.Entries[n-1].Index)
		}
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
