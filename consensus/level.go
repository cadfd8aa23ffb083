package consensus

import (
	"errors"
	"fmt"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// keyLevel is where the ensemble's level is kept, for the start of a release that does not speak it. The log has it,
// too, but is applied only when a leader is heard.
var keyLevel = []byte("zk-lite.level")

// checkLevel reports that this build does not speak the level of the ensemble to which the data directory belongs.
func (n *Node) checkLevel() error {
	level, err := n.cfg.Storage.Stable.GetUint64(keyLevel)
	switch {
	case errors.Is(err, raftboltdb.ErrKeyNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("reading the ensemble's feature level: %w", err)
	}
	n.applied.SetLevel(state.Level(level))
	return n.applied.Level().Spoken()
}

// noteLevel publishes the machine's level, and keeps it for the next start. The applying goroutine calls it, without
// the view lock. What a failure costs is that a wrong release is refused later, by the log.
func (f *fsm) noteLevel() {
	level := f.machine.Level()
	if level == f.n.applied.Level() || level == 0 {
		return
	}
	f.n.applied.SetLevel(level)
	f.n.logger.Info("the ensemble's feature level", "level", level)
	if err := f.n.cfg.Storage.Stable.SetUint64(keyLevel, uint64(level)); err != nil {
		f.n.logger.Error("writing the ensemble's feature level failed", "error", err)
	}
}
