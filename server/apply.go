package server

import (
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// BeginApply gives the calling goroutine the state alone, until EndApply.
func (s *Server) BeginApply() {
	s.view.Lock()
	s.applying.Store(int64(time.Since(s.started)) + 1)
}

// EndApply lets readers in again.
func (s *Server) EndApply() {
	if fault.On(fault.WatchAfterReply) {
		for i := range s.late {
			s.watches.Trigger(s.late[i])
		}
		s.late = s.late[:0]
	}
	for i, c := range s.orphans {
		c.client.Disconnect(ReasonClosed)
		s.orphans[i] = nil
	}
	s.orphans = s.orphans[:0]
	s.applying.Store(0)
	s.view.Unlock()
}

// busy reports whether one entry has been applied for longer than the server's clock
// takes from one look to the next. Meanwhile clients are not read from, because
// what they ask for cannot be looked up.
func (s *Server) busy(now time.Time) bool {
	since := s.applying.Load()
	return since != 0 && now.Sub(s.started)-time.Duration(since) > s.cfg.Tick/ticksPerTick
}

// StateReplaced replaces the whole state by another machine, at the start or when a
// snapshot came from the leader. It is called between BeginApply and EndApply.
// Clients that are connected may have missed events, so they are disconnected
// and set their watches again.
func (s *Server) StateReplaced(m *state.Machine) {
	s.current.machine = m
	s.changes.Restart(m.Zxid())
	s.mu.Lock()
	for id := range s.ends {
		if m.Sessions().Get(id) == nil {
			s.endSessionLocked(id)
		}
	}
	s.mu.Unlock()
	s.disconnectAll(ReasonReset)
}

// Event implements consensus.Handler.
func (s *Server) Event(e *znode.Event) {
	if fault.On(fault.WatchAfterReply) {
		s.late = append(s.late, *e)
	} else {
		s.watches.Trigger(*e)
	}
	s.changes.Add(e)
}

// SessionOpened implements consensus.Handler.
func (s *Server) SessionOpened(x *session.Session) {
	s.leader.track(x.ID, x.Timeout)
}

// SessionAttached implements consensus.Handler: the connection that carried
// the session here before, if there was one, is closed.
func (s *Server) SessionAttached(x *session.Session, _ state.ServerID) {
	s.leader.track(x.ID, x.Timeout)
	if c := s.boundTo(x.ID); c != nil {
		s.forget(c, x.ID)
		c.client.Disconnect(ReasonMoved)
	}
}

// SessionClosed implements consensus.Handler. A connection whose client asked
// for it still gets the reply, which is delivered next, and is then ended by
// its door. One that carries the session while another asked, as when the
// client has come back before its old connection's requests were through, is
// ended after the entry.
func (s *Server) SessionClosed(id znode.SessionID, expired bool) {
	s.leader.remove(id)
	s.endSession(id)
	c := s.boundTo(id)
	if c == nil {
		return
	}
	s.forget(c, id)
	if expired {
		c.client.Disconnect(ReasonExpired)
		return
	}
	s.orphans = append(s.orphans, c)
}

// QuotaExceeded implements consensus.Handler. A subtree is reported at most
// once a minute, as in ZooKeeper.
func (s *Server) QuotaExceeded(path string) {
	now := time.Now()
	s.mu.Lock()
	quiet := now.Sub(s.quota[path]) < time.Minute
	if !quiet {
		if len(s.quota) >= 1000 {
			clear(s.quota) // bounded; at worst a line is repeated
		}
		s.quota[strings.Clone(path)] = now // it lies in a log entry
	}
	s.mu.Unlock()
	if !quiet {
		s.logger.Warn("quota exceeded", "path", path)
	}
}
