package server

import (
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// ReapConfig is how often, and how fast, the leader removes containers and TTL
// znodes whose time has come (ZooKeeper's ContainerManager).
type ReapConfig struct {
	Interval     time.Duration // 0: every minute
	MaxPerMinute int           // 0: 10,000
	NeverUsed    time.Duration // 0: containers that never had a child are kept
}

// reaper proposes, on the leader's server, the removal of znodes whose time has come.
// While the last sweep is not through there is no other, so that they do not pile up.
type reaper struct {
	cfg  ReapConfig
	last time.Time
	left atomic.Int64 // proposals that are still on their way
}

func newReaper(cfg ReapConfig) *reaper {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Minute
	}
	if cfg.MaxPerMinute <= 0 {
		cfg.MaxPerMinute = 10_000
	}
	return &reaper{cfg: cfg}
}

// run proposes one sweep, if it is time for one.
func (r *reaper) run(s *Server, now time.Time) {
	if now.Sub(r.last) < r.cfg.Interval {
		return
	}
	r.last = now
	if !reaps(s.leader.leads()) || r.left.Load() > 0 {
		return
	}
	limit := max(1, int(float64(r.cfg.MaxPerMinute)*r.cfg.Interval.Minutes()))
	var paths []string
	s.View(func(v *View) {
		paths = v.Tree().Reapable(now.UnixMilli(), r.cfg.NeverUsed.Milliseconds(), limit)
	})
	for _, path := range paths {
		r.left.Add(1)
		if err := s.Propose(&state.Command{Op: state.OpReap, Path: path}, r); err != nil {
			return // stopping
		}
	}
}

// Applied implements Waiter, for each of the proposals.
func (r *reaper) Applied(*state.Result) { r.left.Add(-1) }

// Lost implements Waiter.
func (r *reaper) Lost() { r.left.Add(-1) }
