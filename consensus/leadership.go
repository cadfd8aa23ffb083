package consensus

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/internal/crash"
)

// The node follows who leads: it asks raft, and publishes the answer (package leadership). While this server leads, it
// makes entries of the commands that come.

// readLeadership asks raft.
func readLeadership(r *raft.Raft) leadership.State {
	for {
		term := r.CurrentTerm()
		_, id := r.LeaderWithID()
		role := leadership.Role(r.State().String())
		s := leadership.State{Term: term, Leader: state.ServerID(transport.ParseRaftID(id)), Role: role}
		if r.CurrentTerm() == term {
			return s
		}
	}
}

// watchLeadership publishes who leads, has commands proposed while this server leads, and repairs what goes
// wrong with leaders (leaderfaults.go).
func (n *Node) watchLeadership() {
	// raft drops observations that the channel has no room for, so it is also asked at every tick.
	events := make(chan raft.Observation, 64)
	observer := raft.NewObserver(events, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.RaftState:
			return true
		}
		return false
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	tick := time.NewTicker(n.cfg.ElectionTimeout / 2)
	defer tick.Stop()
	own, stale, hung := ownLeadership{n: n}, staleLeader{n: n}, hungDisk{n: n}
	defer own.end()
	defer crash.OnPanic()
	for {
		now := readLeadership(n.raft)
		own.follow(now)
		if n.leadership.Publish(now) {
			n.logger.Debug("leadership changed", "leader", now.Leader, "term", now.Term, "role", now.Role)
		}
		select {
		case <-n.ctx.Done():
			return
		case <-events:
		case <-own.refused():
			// An entry was refused although this server still leads, as during a
			// transfer: start again, but not in a tight loop.
			select {
			case <-n.ctx.Done():
				return
			case <-time.After(restartPause):
			}
		case <-tick.C:
			hung.check(now)
			stale.check(n.leadership.Now())
		}
	}
}

// restartPause is how long a leader waits after a refused entry.
const restartPause = 2 * time.Millisecond

// ownLeadership is the leadership of this server, if it leads.
type ownLeadership struct {
	n        *Node
	term     uint64
	batcher  *forward.Batcher   // nil: this server does not lead
	stop     context.CancelFunc // ends the tasks of this leadership
	refusals *refusals
}

// refused is closed when the batcher has ended while this server leads.
func (o *ownLeadership) refused() <-chan struct{} {
	if o.batcher == nil {
		return nil
	}
	return o.batcher.Ended()
}

// follow begins and ends the leadership, before its change is published.
func (o *ownLeadership) follow(now leadership.State) {
	n, leads := o.n, now.Role == leadership.Leader
	if o.batcher != nil && (!leads || now.Term != o.term) {
		o.end()
		if !leads {
			n.leadership.Publish(now) // first, so that no subscriber believes in it while the handler works
			n.cfg.Handler.Lead(0)
		}
	}
	switch {
	case !leads:
	case o.batcher == nil:
		o.begin(now.Term)
	default:
		select {
		case <-o.batcher.Ended():
			o.restart()
		default:
		}
	}
}

// begin begins the leadership of a term.
func (o *ownLeadership) begin(term uint64) {
	n := o.n
	o.term, o.refusals = term, &refusals{}
	n.forwarder.Stats.Begin()
	n.cfg.Handler.Lead(term)
	var ctx context.Context
	ctx, o.stop = context.WithCancel(n.ctx)
	n.tasks.Go(func() { n.ensemble.RunAutopilot(ctx) })
	o.restart()
}

// restart makes a batcher. Those before have ended, and their streams with them.
func (o *ownLeadership) restart() {
	n, row := o.n, o.refusals
	propose := func(entry []byte) func() error { return proposeEntry(n, row, entry) }
	o.batcher = forward.NewBatcher(n.ctx, o.term, propose, &n.forwarder.Stats, n.logger)
	n.tasks.Go(o.batcher.Run)
	n.forwarder.SetBatcher(o.batcher)
}

// end ends the leadership, if there is one.
func (o *ownLeadership) end() {
	if o.batcher == nil {
		return
	}
	o.stop()
	o.batcher = nil
	o.n.forwarder.SetBatcher(nil)
}

// proposeEntry gives an entry to raft, and returns what waits for its answer.
func proposeEntry(n *Node, row *refusals, entry []byte) (wait func() error) {
	future := n.raft.Apply(entry, 0)
	return func() error {
		err := future.Error()
		noteRefusal(n, row, err)
		return err
	}
}
