package membership

import (
	"context"
	"fmt"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// Levels returns the ensemble's feature level, as applied here, and the highest one that all its servers speak; 0: not
// known.
func (e *Ensemble) Levels() (now, highest state.Level) {
	members := e.Members()
	all := map[state.ServerID]bool{}
	for id := range members {
		all[id] = true
	}
	highest, _ = state.CommonLevel(all, members)
	return e.cfg.Applied.Level(), highest
}

// RaiseLevel raises the ensemble's feature level, for good: servers that do not speak it cannot come back. The state
// machine refuses it unless every server has published that it speaks it. To repeat it is harmless.
//
// Errors: ErrLevel, with the server that is in the way; ErrNoLeader; ctx's and ErrStopped, and then the outcome is
// unknown.
func (e *Ensemble) RaiseLevel(ctx context.Context, to state.Level) error {
	if err := e.checkLevel(to); err != nil {
		return err
	}
	if err := e.awaitLeader(ctx); err != nil {
		return fmt.Errorf("raising the feature level to %d: %w", to, err)
	}
	code, err := e.cfg.Queue.Do(ctx, &state.Command{Op: state.OpLevel, Level: to})
	if err == nil && code != znode.OK {
		err = fmt.Errorf("%w: the ensemble has changed meanwhile", ErrLevel)
	}
	if err != nil {
		return fmt.Errorf("raising the feature level to %d: %w", to, err)
	}
	return nil
}

func (e *Ensemble) checkLevel(to state.Level) error {
	now, members := e.cfg.Applied.Level(), e.cfg.Applied.Members()
	if to == 0 || to < now {
		return fmt.Errorf("%w: the ensemble is at level %d and never goes back, so it cannot have level "+
			"%d", ErrLevel, now, to)
	}
	for id := range e.cfg.Applied.Configuration() {
		switch m := members[id]; {
		case m.MaxLevel == 0:
			return fmt.Errorf("%w: server %d has not said yet which levels it speaks; start it, or remove it from the "+
				"ensemble", ErrLevel, id)
		case m.MaxLevel < to:
			return fmt.Errorf("%w: server %d runs %s, which speaks levels %d to %d, not %d; upgrade it "+
				"first", ErrLevel, id,
				m.Version, m.MinLevel, m.MaxLevel, to)
		}
	}
	return nil
}
