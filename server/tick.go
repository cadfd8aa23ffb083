package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/grid"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// ReapConfig is how often, and how fast, the leader removes containers and TTL
// znodes whose time has come (ZooKeeper's ContainerManager).
type ReapConfig struct {
	Interval     time.Duration // 0: every minute
	MaxPerMinute int           // 0: 10,000
	NeverUsed    time.Duration // 0: containers that never had a child are kept
}

// ticksPerTick is how often in a tick heartbeats are reported and the clock is
// looked at: the delay it adds to expiry stays a fraction of the promise.
const ticksPerTick = 4

// leadership is what only the leader's server does: it keeps the clock of all
// sessions and asks for the removal of dead sessions and reapable znodes.
type leadership struct {
	// sweep counts the reaper's proposals that are still on their way.
	sweep atomic.Int64

	mu    sync.Mutex // protects the fields below
	term  uint64     // 0: this server does not lead
	clock *session.Clock
}

func (l *leadership) track(id znode.SessionID, timeout time.Duration) {
	l.mu.Lock()
	if l.term != 0 {
		l.clock.Track(id, lease(timeout), time.Now())
	}
	l.mu.Unlock()
}

func (l *leadership) remove(id znode.SessionID) {
	l.mu.Lock()
	if l.term != 0 {
		l.clock.Remove(id)
	}
	l.mu.Unlock()
}

// Lead tells the server that it leads since this term; 0 that it does not any
// more. Every session gets a full timeout from a new leader.
func (s *Server) Lead(term uint64) {
	s.View(func(v *View) {
		s.leader.mu.Lock()
		defer s.leader.mu.Unlock()
		s.leader.term = term
		if term == 0 {
			s.leader.clock = nil
			return
		}
		s.leader.clock = session.NewClock(s.cfg.Tick)
		now := time.Now()
		v.machine.Sessions().Each(func(x *session.Session) {
			s.leader.clock.Track(x.ID, lease(x.Timeout), now)
		})
	})
}

// Touched tells the leader's server that these sessions' clients were heard by
// some server.
func (s *Server) Touched(ids []znode.SessionID) {
	s.leader.mu.Lock()
	defer s.leader.mu.Unlock()
	if s.leader.term == 0 {
		return
	}
	now := time.Now()
	for _, id := range ids {
		s.leader.clock.Touch(id, now)
	}
}

// tick is the server's own clock.
func (s *Server) tick() {
	defer s.done.Done()
	period := s.cfg.Tick / ticksPerTick
	timer := time.NewTimer(grid.Until(period))
	defer timer.Stop()
	interval := s.cfg.Reap.Interval
	if interval <= 0 {
		interval = time.Minute
	}
	lastReap := time.Now()
	last := lastReap
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
			timer.Reset(grid.Until(period))
			now := time.Now()
			busy := s.busy(now)
			s.excuse(now.Sub(last), busy)
			last = now
			s.reportHeard(busy)
			s.expire(now)
			s.upToDate()
			s.disconnectCutOff()
			if now.Sub(lastReap) >= interval {
				lastReap = now
				s.reap(now, interval)
			}
		}
	}
}

// excuse postpones the end of all sessions when the clock has stood still, as
// when the process or its machine was stopped for a while: their heartbeats
// could not be heard, and may still lie in the sockets. The same goes for the time
// that the application of one entry takes, such as that of a large restore: then
// the requests of HTTP sessions wait for its end, here and about as long elsewhere.
func (s *Server) excuse(since time.Duration, busy bool) {
	if since <= s.cfg.Tick && !busy {
		return
	}
	s.leader.mu.Lock()
	defer s.leader.mu.Unlock()
	if s.leader.term != 0 {
		s.leader.clock.Delay(since)
		if busy {
			return
		}
		s.logger.Warn("this server stood still; no session expires for as long again", "for", since)
	}
}

// reportHeard tells the leader whose clients were heard since the last time.
// It is sent also when there are none: the leader's answer shows that it is in
// touch with a majority. While an entry keeps this server from reading what clients
// send, it answers for those that are connected.
func (s *Server) reportHeard(busy bool) {
	var ids []znode.SessionID
	s.mu.Lock() // also while heard changes, or forget would miss that it is set
	s.latelyMu.Lock()
	lately := s.lately
	s.lately = nil
	s.latelyMu.Unlock()
	for _, c := range lately {
		c.heard.Store(false)
	}
	if busy {
		ids = slices.AppendSeq(ids, maps.Keys(s.bound))
	} else {
		for _, c := range lately {
			if id, _ := c.Session(); s.bound[id] == c {
				ids = append(ids, id)
			}
		}
	}
	ids = slices.AppendSeq(ids, maps.Keys(s.heard))
	clear(s.heard)
	s.mu.Unlock()
	s.agree.Touch(ids)
}

// expire proposes the end of the sessions whose clients were silent too long.
// The proposal counts only in the term in which it was decided.
func (s *Server) expire(now time.Time) {
	s.leader.mu.Lock()
	var ids []znode.SessionID
	term := s.leader.term
	if term != 0 {
		ids = s.leader.clock.Expire(now)
	}
	s.leader.mu.Unlock()
	for _, id := range ids {
		s.logger.Info("session expired", "session", id)
		cmd := &state.Command{Op: state.OpExpireSession, Session: id, Term: term}
		if err := s.Propose(cmd, nobody{}); err != nil {
			return // stopping
		}
	}
}

// reap proposes the removal of znodes whose time has come. While the last
// sweep is not through there is no other, so that they do not pile up.
func (s *Server) reap(now time.Time, interval time.Duration) {
	s.leader.mu.Lock()
	leads := s.leader.term != 0
	s.leader.mu.Unlock()
	if !reaps(leads) || s.leader.sweep.Load() > 0 {
		return
	}
	perMinute := s.cfg.Reap.MaxPerMinute
	if perMinute <= 0 {
		perMinute = 10_000
	}
	limit := max(1, int(float64(perMinute)*interval.Minutes()))
	var paths []string
	s.View(func(v *View) {
		paths = v.Tree().Reapable(now.UnixMilli(), s.cfg.Reap.NeverUsed.Milliseconds(), limit)
	})
	for _, path := range paths {
		s.leader.sweep.Add(1)
		err := s.Propose(&state.Command{Op: state.OpReap, Path: path}, sweeper{&s.leader.sweep})
		if err != nil {
			return // stopping
		}
	}
}

// sweeper waits for one command of the reaper.
type sweeper struct{ left *atomic.Int64 }

func (w sweeper) Applied(*state.Result) { w.left.Add(-1) }
func (w sweeper) Lost()                 { w.left.Add(-1) }

// nobody waits for a command whose result matters to no one.
type nobody struct{}

func (nobody) Applied(*state.Result) {}
func (nobody) Lost()                 {}
