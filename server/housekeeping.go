package server

import (
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fault"
)

// roundsPerTick is how often per tick touched sessions are reported and the clock of
// sessions is read: the delay that it adds to expiry stays a fraction of the promise.
const roundsPerTick = 4

// startPoll is how often a server that has just started looks whether it may serve clients: those that come before are
// refused, and come back a second later, if not to another server.
const startPoll = 20 * time.Millisecond

// housekeeping is the server's own goroutine: what recurs, four times per tick.
func (s *Server) housekeeping() {
	period := s.cfg.Tick / roundsPerTick
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	starting := time.NewTicker(startPoll)
	defer starting.Stop()
	last := time.Now()
	for {
		select {
		case <-s.stop:
			return
		case <-starting.C:
			if s.catchUp.upToDate() {
				starting.Stop()
			}
		case <-ticker.C:
			now := time.Now()
			busy, since := s.handler.busy(now, period), now.Sub(last)
			last = now
			s.slow.Report(max(since-period, 0))
			s.expired.Report()
			extended := s.extendDeadlines(since, busy)
			// Also when none was touched: the leader's answer shows that it is in touch
			// with a majority. While an entry keeps this server from reading what clients
			// send, it answers for those that are connected.
			s.Source.keepOwnSession()
			s.consensus.Touch(s.local.touch(s.conns.takeTouched(busy), now))
			s.expire(now)
			// While it serves no clients, none can be heard.
			if serves := s.catchUp.upToDate(); extended || !serves {
				s.local.clock.Delay(since)
			}
			s.local.expire(now)
			s.progress.note(s.Status(), now.Sub(s.started))
			s.disconnectCutOff()
			s.Callers.sweep(now)
			s.ReadOnly.round(now, busy || since > s.cfg.Tick)
		}
	}
}

// ReapConfig is how often, and how fast, the leader removes containers and TTL
// znodes that have expired (ZooKeeper's ContainerManager).
type ReapConfig struct {
	Interval     time.Duration // 0: every minute
	MaxPerMinute int           // 0: 10,000
	NeverUsed    time.Duration // 0: containers that never had a child are kept
}

// reaper proposes, on the leader's server, the removal of znodes that have expired.
// The next sweep waits for the last one to be applied, so that sweeps do not pile up.
type reaper struct {
	srv  *Server
	cfg  ReapConfig
	left atomic.Int64 // proposals that are still on their way
}

func newReaper(s *Server) *reaper {
	r := &reaper{srv: s, cfg: s.cfg.Reap}
	if r.cfg.Interval <= 0 {
		r.cfg.Interval = time.Minute
	}
	if r.cfg.MaxPerMinute <= 0 {
		r.cfg.MaxPerMinute = 10_000
	}
	return r
}

// run is the reaper's own goroutine: its pace is that of its settings, not of the tick.
func (r *reaper) run() {
	ticker := time.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-r.srv.stop:
			return
		case <-ticker.C:
			r.sweep()
		}
	}
}

// sweep proposes the removal of expired znodes one by one, with the pause that follows from
// MaxPerMinute, for a minute at most.
func (r *reaper) sweep() {
	s := r.srv
	if !s.sessions.Leads() || r.left.Load() > 0 || fault.On(fault.NeverReap) {
		return
	}
	var paths []string
	s.View(func(v *View) {
		if s.handler.mirrors() {
			return // ZooKeeper's servers delete them
		}
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
