package server

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// What follows is for sessions whose clients have no connection but send one
// request at a time, to any server (HTTP). Their commands carry FlagAnyServer.

// NewSession is the command that opens a session with about this timeout: the
// server's bounds apply.
func (s *Server) NewSession(timeout time.Duration) *state.Command {
	return &state.Command{
		Op: state.OpCreateSession, Session: s.newSessionID(),
		Timeout: s.clamp(timeout), Password: s.newPassword(),
	}
}

// CheckSession reports whether this server knows the session and the password is
// its own, and returns its timeout. A session that was opened through another
// server may not be known here yet: before it is refused, a command should have
// gone through the log (Barrier).
func (s *Server) CheckSession(
	id znode.SessionID, password session.Password,
) (timeout time.Duration, ok bool) {
	s.View(func(v *View) {
		x := v.machine.Sessions().Get(id)
		if x != nil && subtle.ConstantTimeCompare(x.Password[:], password[:]) == 1 {
			timeout, ok = x.Timeout, true
		}
	})
	return timeout, ok
}

// Barrier waits until this server has applied everything that was acknowledged by
// any server before the call.
func (s *Server) Barrier(ctx context.Context) error {
	_, err := s.Do(ctx, &state.Command{Op: state.OpSync})
	return err
}

// Touch notes a heartbeat of a session.
func (s *Server) Touch(id znode.SessionID) {
	s.mu.Lock()
	s.heard[id] = struct{}{}
	s.mu.Unlock()
}

// sessionEnd is somebody who waits for a session's end.
type sessionEnd struct{ done chan struct{} }

// SessionEnd returns a channel that is closed when the session has ended, at once
// if there is none. The caller must call cancel.
func (s *Server) SessionEnd(id znode.SessionID) (done <-chan struct{}, cancel func()) {
	e := &sessionEnd{make(chan struct{})}
	s.View(func(v *View) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if v.machine.Sessions().Get(id) == nil {
			close(e.done)
			return
		}
		if s.ends[id] == nil {
			s.ends[id] = map[*sessionEnd]struct{}{}
		}
		s.ends[id][e] = struct{}{}
	})
	return e.done, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.ends[id], e); len(s.ends[id]) == 0 {
			delete(s.ends, id)
		}
	}
}

func (s *Server) endSession(id znode.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endSessionLocked(id)
}

func (s *Server) endSessionLocked(id znode.SessionID) {
	for e := range s.ends[id] {
		close(e.done)
	}
	delete(s.ends, id)
}
