package consensus

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/crash"
)

// Halt is why a server no longer takes part in its ensemble: it applies, acknowledges and serves nothing, keeps its
// files, and its process runs on to say so.
type Halt struct {
	Kind   selfcheck.Kind `json:"kind"`
	Reason string         `json:"reason"` // what happened, and what to do
}

// keyHalt is where a Halt is kept that a start could not find again.
var keyHalt = []byte("zk-lite.halt")

// halt ends this server's part in the ensemble. Only the first call has an effect. It waits for nothing, so that
// every goroutine may call it, also raft's; those goroutines keep tasks from being waited for.
func (n *Node) halt(kind selfcheck.Kind, reason string) {
	h := &Halt{kind, reason}
	if !n.halted.CompareAndSwap(nil, h) {
		return
	}
	n.logger.Error("halted: this server takes no part in the ensemble any more", "kind", kind, "reason", reason)
	n.cfg.Handler.Halted()
	n.tasks.Go(func() { n.leave(h) })
}

// leave stops raft. The peer port goes on to tell the others why.
func (n *Node) leave(h *Halt) {
	if h.Kind != selfcheck.Removed { // which the others say at a start
		b, err := json.Marshal(h)
		if err == nil {
			err = n.cfg.Storage.Stable.Set(keyHalt, b)
		}
		if err != nil {
			n.logger.Error("a restart may forget why this server is halted", "error", err)
		}
	}
	if !n.started() {
		return
	}
	if err := n.ensemble.Transfer(); err != nil {
		n.logger.Warn("handing leadership over failed; the others will elect", "error", err)
	}
	n.stopRaft()
	n.loseCommands()
}

// stopRaft waits for raft's end.
func (n *Node) stopRaft() {
	n.transport.StopRetrying() // raft waits for its requests
	if err := n.raft.Shutdown().Error(); err != nil && !errors.Is(err, raft.ErrRaftShutdown) {
		n.logger.Error("stopping raft failed", "error", err)
	}
}

// loseCommands takes the commands that have no result from the queue. Raft has ended.
func (n *Node) loseCommands() {
	n.queue.Stop()
	n.cfg.Handler.BeginApply()
	defer n.cfg.Handler.EndApply()
	defer crash.OnPanic()
	for _, w := range n.queue.SkipTo(1<<64 - 1) {
		w.Lost()
	}
}

// loadHalt reads why this server was halted before its process ended; nil: it was not.
func (n *Node) loadHalt() (*Halt, error) {
	b, err := n.cfg.Storage.Stable.Get(keyHalt)
	if errors.Is(err, raftboltdb.ErrKeyNotFound) || err == nil && len(b) == 0 {
		return nil, nil
	}
	h := &Halt{}
	if err == nil {
		err = json.Unmarshal(b, h)
	}
	if err != nil {
		return nil, fmt.Errorf("reading why this server was halted: %w", err)
	}
	return h, nil
}

// checkedNode is the node as its Checker sees it.
type checkedNode struct{ *Node }

var _ selfcheck.Node = checkedNode{}

// Halt implements selfcheck.Node.
func (n checkedNode) Halt(kind selfcheck.Kind, reason string) { n.halt(kind, reason) }

// Halted implements selfcheck.Node.
func (n checkedNode) Halted() string {
	if h := n.halted.Load(); h != nil {
		return string(h.Kind) + ": " + h.Reason
	}
	return ""
}

// Incarnation implements selfcheck.Node.
func (n checkedNode) Incarnation() uint64 { return n.queue.OriginApplying().Incarnation }

// LastIndex implements selfcheck.Node.
func (n checkedNode) LastIndex() uint64 {
	if n.started() {
		return n.raft.LastIndex()
	}
	return n.cfg.Storage.LastIndex()
}

// Life implements selfcheck.Node.
func (n checkedNode) Life(id state.ServerID) uint64 {
	if !n.started() {
		return 0
	}
	n.cfg.Handler.BeginApply()
	defer n.cfg.Handler.EndApply()
	return n.fsm.machine.Incarnation(id)
}

// ProposeDigest implements selfcheck.Node. It fails when the node stops.
func (n checkedNode) ProposeDigest() {
	_ = n.Propose(&state.Command{Op: state.OpDigest}, ignore{}, forward.From{})
}

// checkEntry has the Checker note an entry, and take a digest after one that asks for it.
func (f *fsm) checkEntry(l *raft.Log) {
	f.n.check.Applied(f.machine, f.machine.Chain(l.Index, l.Term, l.Data), false)
	if f.digest {
		f.digest = false
		f.n.check.Freeze(f.machine)
	}
}
