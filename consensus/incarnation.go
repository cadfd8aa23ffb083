package consensus

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// keyIncarnation is where the last incarnation is kept.
var keyIncarnation = []byte("zk-lite.incarnation")

// nextIncarnation numbers this server's starts, so that commands of an earlier
// one differ from those of this one. It is the wall clock's milliseconds,
// so that an observer that has lost its disk does not take a number that it had
// before; advanceIncarnation takes care of a clock that is behind. It returns the former one, too; 0: none.
func nextIncarnation(s raft.StableStore) (last, next uint64, err error) {
	last, err = s.GetUint64(keyIncarnation)
	if err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return 0, 0, fmt.Errorf("reading the incarnation: %w", err)
	}
	next = max(last+1, uint64(time.Now().UnixMilli()))
	if err := s.SetUint64(keyIncarnation, next); err != nil {
		return 0, 0, fmt.Errorf("writing the incarnation: %w", err)
	}
	return last, next, nil
}

// advanceIncarnation begins a later incarnation than all of this server that the log contains. It
// is called by the applying goroutine; the disk is not waited for, since after
// a crash the same would happen again.
func (n *Node) advanceIncarnation(m *state.Machine) {
	known := m.Incarnation(n.cfg.ID)
	if known <= n.queue.OriginApplying().Incarnation {
		return
	}
	n.logger.Warn("the log contains a newer incarnation of this server; its disk or clock was reset",
		"known", known, "this", n.queue.OriginApplying().Incarnation)
	n.queue.Renumber(known + 1)
	n.tasks.Go(func() {
		if err := n.cfg.Storage.Stable.SetUint64(keyIncarnation, known+1); err != nil {
			n.logger.Error("writing the incarnation failed", "error", err)
		}
	})
}
