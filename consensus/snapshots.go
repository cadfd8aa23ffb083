package consensus

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// maxPutOff is how often the FSM must have wanted a snapshot before the leader takes one although a
// follower needs the log that it shortens: the log, and with it the disk and the time of a restart,
// grow to so many times what they are otherwise.
const maxPutOff = 16

// snapshotStats are about the snapshots that this server has taken.
type snapshotStats struct {
	last   atomic.Int64 // when the newest was written, in seconds since the epoch; 0: there is none
	failed atomic.Int64
	fault  atomic.Pointer[string] // why the last attempt failed; nil: it did not
}

// takeSnapshots takes a snapshot whenever the FSM wants one.
func (n *Node) takeSnapshots() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.wantSnapshot:
			n.letCatchUp()
			err := n.limitTrailing()
			if err == nil {
				err = n.raft.Snapshot().Error()
			}
			if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) && n.ctx.Err() == nil {
				n.snapshots.failed.Add(1)
				text := err.Error()
				n.snapshots.fault.Store(&text)
				n.logger.Error("taking a snapshot failed; the log grows until one succeeds", "error", err)
			}
		}
	}
}

// limitTrailing sets how many entries raft keeps behind the snapshot that comes: as many as ever, but no more
// than TrailingBytes. A follower that needs more than that is better off with the snapshot.
func (n *Node) limitTrailing() error {
	log := n.cfg.Storage.Raftlog
	if log == nil {
		return nil
	}
	c := n.raft.ReloadableConfig()
	c.TrailingLogs = min(n.cfg.TrailingLogs, log.NewestWithin(n.cfg.TrailingBytes))
	return n.raft.ReloadConfig(c)
}

// letCatchUp waits while a follower that was sent a snapshot needs the log behind that
// one: the next snapshot would shorten it, and the follower would have to be sent that
// snapshot too (transport, receivers.go).
func (n *Node) letCatchUp() {
	tick := time.NewTicker(n.cfg.ElectionTimeout / 8)
	defer tick.Stop()
	for wants := 1; wants < maxPutOff && n.transport.CatchingUp(); {
		select {
		case <-n.ctx.Done():
			return
		case <-n.wantSnapshot:
			wants++
		case <-tick.C:
		}
	}
}
