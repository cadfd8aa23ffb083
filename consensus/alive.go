package consensus

import (
	"context"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
)

// busyPoll is how often Alive looks whether raft's main loop has a reason for its silence.
const busyPoll = time.Second

// Alive returns nil when raft's main loop has answered. It may be silent, for however long, while it waits for the
// disk or while a snapshot is written or installed: a restart would not make that end sooner. An ensemble that has not
// been bootstrapped has no main loop yet. Otherwise Alive waits; the error is that of ctx, or ErrStopped.
func (n *Node) Alive(ctx context.Context) error {
	busy := func() bool { return n.disk.Waiting() > 0 || n.disk.Fault() != "" || n.transport.SnapshotUnderWay() }
	select {
	case <-n.ready:
	default:
		return nil
	}
	if busy() { // so no question is left behind each time
		return nil
	}
	answered := make(chan struct{})
	go func() { // not one of the tasks, which Close awaits: raft leaves a question open that comes as it shuts down
		_ = n.raft.VerifyLeader().Error() // that this server does not lead is an answer
		close(answered)
	}()
	tick := time.NewTicker(busyPoll)
	defer tick.Stop()
	for {
		select {
		case <-answered:
			return nil
		case <-tick.C:
			if busy() {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-n.ctx.Done():
			return forward.ErrStopped
		}
	}
}
