package server

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
)

// roundsPerTick is how often per tick touched sessions are reported and the clock of
// sessions is read: the delay that it adds to expiry stays a fraction of the promise.
const roundsPerTick = 4

// housekeeping is the server's own goroutine: what recurs, at a quarter of a tick.
func (s *Server) housekeeping() {
	period := s.cfg.Tick / roundsPerTick
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			now := time.Now()
			s.slow.Report(max(now.Sub(last)-period, 0))
			busy := s.handler.busy(now, period)
			if since := now.Sub(last); since > s.cfg.Tick {
				s.expired.Paused(since)
			}
			s.expired.Report()
			s.extendDeadlines(now.Sub(last), busy)
			last = now
			// Also when none was touched: the leader's answer shows that it is in touch
			// with a majority. While an entry keeps this server from reading what clients
			// send, it answers for those that are connected.
			s.consensus.Touch(s.conns.takeTouched(busy))
			s.expire(now)
			s.upToDate()
			s.noteProgress(now)
			s.disconnectCutOff()
		}
	}
}

// extendDeadlines postpones the end of all sessions when this server has stood still, as
// when the process or its machine was paused: nothing could be read from clients, and
// what they sent may still lie in the sockets. The same goes for the time that the
// application of one entry takes (busy), such as that of a large restore: then the
// requests of HTTP sessions wait for its end, here and about as long elsewhere.
func (s *Server) extendDeadlines(since time.Duration, busy bool) {
	if since <= s.cfg.Tick && !busy {
		return
	}
	if leads := s.sessions.Delay(since); leads && !busy {
		s.logger.Warn("this server was paused; all session deadlines are extended by that time", "for", since)
	}
}

// expire proposes the end of the sessions whose clients were silent too long.
// The proposal counts only in the term in which it was decided.
func (s *Server) expire(now time.Time) {
	dead, term := s.sessions.Expire(now)
	if len(dead) > 0 {
		s.expired.Proposed(dead)
	}
	for _, x := range dead {
		cmd := &state.Command{Op: state.OpExpireSession, Session: x.ID, Term: term}
		if err := s.Propose(cmd, nobody{}); err != nil {
			return // stopping
		}
	}
}

// disconnectCutOff disconnects the clients that have been without a leader for too
// long. Those that have no session yet count as the shortest one.
func (s *Server) disconnectCutOff() {
	contact := s.Status().Contact
	if contact <= s.cfg.patience(s.cfg.MinSessionTimeout) {
		return
	}
	s.conns.disconnect(ReasonNoLeader, func(timeout time.Duration) bool {
		return contact > s.cfg.patience(max(timeout, s.cfg.MinSessionTimeout))
	})
}
