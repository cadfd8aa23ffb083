package server

import (
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fault"
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
	left atomic.Int64 // proposals that are still on their way
}

// reap is the reaper's own goroutine: its pace is that of its settings, not of the tick.
func (s *Server) reap() {
	r := reaper{cfg: s.cfg.Reap}
	if r.cfg.Interval <= 0 {
		r.cfg.Interval = time.Minute
	}
	if r.cfg.MaxPerMinute <= 0 {
		r.cfg.MaxPerMinute = 10_000
	}
	ticker := time.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			r.sweep(s)
		}
	}
}

// sweep proposes the removal of what may go now, one after the other with the pause that
// makes MaxPerMinute; at most a minute's worth.
func (r *reaper) sweep(s *Server) {
	if !s.sessions.Leads() || r.left.Load() > 0 || fault.On(fault.NeverReap) {
		return
	}
	var paths []string
	s.View(func(v *View) {
		paths = v.Tree().Reapable(time.Now().UnixMilli(), r.cfg.NeverUsed.Milliseconds(), r.cfg.MaxPerMinute)
	})
	pause := time.Minute / time.Duration(r.cfg.MaxPerMinute)
	for _, path := range paths {
		if !s.sessions.Leads() {
			return
		}
		r.left.Add(1)
		if err := s.Propose(&state.Command{Op: state.OpReap, Path: path}, r); err != nil {
			return // stopping
		}
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
		}
	}
}

// Applied implements Waiter, for each of the proposals.
func (r *reaper) Applied(*state.Result) { r.left.Add(-1) }

// Lost implements Waiter.
func (r *reaper) Lost() { r.left.Add(-1) }
