package server

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
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
		Op: state.OpCreateSession, Session: znode.SessionID(s.nextSession.Add(1)),
		Timeout: s.cfg.clamp(timeout), Password: newPassword(),
	}
}

func newPassword() (p session.Password) {
	if _, err := rand.Read(p[:]); err != nil {
		panic(fmt.Sprintf("server: the system gives no random bytes: %v", err))
	}
	return p
}

// CheckSession reports whether this server has the session and the password is
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

// Touch notes that the client of a session sent something.
func (s *Server) Touch(id znode.SessionID) { s.conns.touchSession(id) }

// SessionEnd returns a channel that is closed when the session has ended, at once
// if there is none. The caller must call cancel.
func (s *Server) SessionEnd(id znode.SessionID) (done <-chan struct{}, cancel func()) {
	e := &sessionEnd{make(chan struct{})}
	s.View(func(v *View) {
		if v.machine.Sessions().Get(id) == nil {
			close(e.done)
			return
		}
		s.ends.add(id, e)
	})
	return e.done, func() { s.ends.remove(id, e) }
}

// SessionDeadlines returns, on the leader, when the ensemble's sessions expire unless their
// clients send something, in milliseconds since the epoch. Elsewhere it is empty.
func (s *Server) SessionDeadlines() map[int64][]znode.SessionID { return s.sessions.Deadlines() }

// Connection returns the connection that carries a session on this server; nil: none does.
func (s *Server) Connection(id znode.SessionID) *Conn { return s.conns.of(id) }
