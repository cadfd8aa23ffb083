package server

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// How long a session lives: the commands that open, move and end it are applied on every server; the leader's server
// tracks what its client sends to any server, and proposes its end.

// NewSession returns the command that opens a session with about this timeout: the
// server's bounds apply.
func (s *Server) NewSession(timeout time.Duration) *state.Command {
	id := znode.SessionID(s.nextSession.Add(1))
	return &state.Command{
		Op: state.OpCreateSession, Session: id, Timeout: s.cfg.clamp(timeout), Password: s.Source.password(id),
	}
}

func newPassword() (p session.Password) {
	if _, err := rand.Read(p[:]); err != nil {
		panic(fmt.Sprintf("server: the system gives no random bytes: %v", err))
	}
	return p
}

// OpenSession asks for a new session. op.Done gets the result; on OK the
// connection carries the session from then on.
func (c *Conn) OpenSession(timeout time.Duration, op Op) error {
	if c.readOnly {
		x := c.newSession(timeout)
		return c.Read(readOnlyOpen{op, c, session.Session{ID: x.Session, Timeout: x.Timeout, Password: x.Password}})
	}
	if s := c.server; s.cfg.LocalSessions && !s.Source.on.Load() {
		return c.openLocal(timeout, op)
	}
	return c.Write(c.newSession(timeout), op)
}

// newSession is Server.NewSession for a client of ZooKeeper's protocol.
func (c *Conn) newSession(timeout time.Duration) *state.Command {
	x := c.server.NewSession(timeout)
	if c.server.cfg.CompatiblePasswords {
		x.Password = session.CompatiblePassword(x.Session)
	}
	return x
}

// AttachSession asks for a session that exists. op.Done gets the result:
// ErrSessionExpired when there is none with this password. Because the request
// goes through the log, this server has then applied everything that the
// client may have seen elsewhere.
func (c *Conn) AttachSession(
	id znode.SessionID, password session.Password, timeout time.Duration, op Op,
) error {
	timeout = c.server.cfg.clamp(timeout)
	if c.readOnly {
		return c.attachReadOnly(id, password, timeout, op)
	}
	if x, ok := c.server.local.attach(c, id, password, timeout); ok {
		return c.Write(&state.Command{Op: state.OpSync}, localAttach{op, x})
	}
	return c.Write(&state.Command{Op: state.OpAttach, Session: id, Password: password, Timeout: timeout}, op)
}

// SessionOpened implements consensus.Handler.
func (h *handler) SessionOpened(x *session.Session) {
	if !h.mirrors() {
		h.srv.sessions.Track(x, time.Now())
	}
}

// SessionAttached implements consensus.Handler: the connection that carried
// the session here before, if there was one, is closed.
func (h *handler) SessionAttached(x *session.Session, _ state.ServerID) {
	h.srv.expired.Reconnected(x.ID)
	h.srv.sessions.Track(x, time.Now())
	if c := h.srv.conns.of(x.ID); c != nil {
		h.srv.conns.unbind(c, x.ID)
		c.client.Disconnect(ReasonMoved)
	}
}

// Lead implements consensus.Handler: this server leads since this term; with 0 it no
// longer does. Every session gets a full timeout from a new leader.
func (h *handler) Lead(term uint64) {
	h.srv.View(func(v *View) {
		table := v.machine.Sessions()
		if h.mirrors() {
			table = session.NewTable()
		}
		h.srv.sessions.Lead(term, table, time.Now())
	})
}

// mirrors reports whether the state is a copy of a ZooKeeper ensemble's, whose servers hear its clients and decide
// which sessions expire: then none is tracked here. The caller holds the view lock.
func (h *handler) mirrors() bool {
	_, yes := h.srv.current.machine.Mirror()
	return yes
}

// noteMirror gives all sessions a full timeout when the state has become the ensemble's own, and ends those that only
// this server knows when the state is no longer.
func (h *handler) noteMirror() {
	was := h.mirrored
	m, on := h.srv.current.machine.Mirror()
	h.srv.Source.note(m, on, time.Since(h.srv.started))
	switch h.mirrored = on; {
	case was && !on:
		h.srv.sessions.TrackAll(h.srv.current.machine.Sessions(), time.Now())
	case on && !was:
		h.srv.local.endAll() // ZooKeeper carries out no write without a session that it knows
	}
}

// Touched implements consensus.Handler: the clients of these sessions sent something to
// some server, and this server leads.
func (h *handler) Touched(by state.ServerID, ids []znode.SessionID) {
	if c := h.srv.Source.carrier.Load(); c != nil {
		(*c).Touched(ids)
	}
	h.srv.expired.Reported(by)
	h.srv.sessions.Touch(uint64(by), ids, time.Now())
}

// extendDeadlines postpones the end of all sessions when this server has not run since the
// last call, as when the process or its machine was paused: nothing could be read from clients,
// and what they sent may still be in the sockets. The same goes for the time that the
// application of one entry takes (busy), such as that of a large restore: then the
// requests of HTTP sessions wait for its end, here and about as long elsewhere.
// It reports whether it was so.
func (s *Server) extendDeadlines(since time.Duration, busy bool) bool {
	paused := since > s.cfg.Tick
	if paused {
		s.expired.Paused(since)
	}
	if !paused && !busy {
		return false
	}
	if leads := s.sessions.Delay(since); leads && !busy {
		s.logger.Warn("this server was paused; all session deadlines are extended by that time", "for", since)
	}
	return true
}

// expire proposes the end of the sessions whose clients have been silent for too long.
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

// SessionClosed implements consensus.Handler. A connection whose client asked
// for it still gets the reply, which is delivered next, and is then ended by
// its listener. One that carries the session while another asked, as when the
// client has come back before its old connection's requests were through, is
// ended after the entry.
func (h *handler) SessionClosed(x *session.Session, ephemerals []string, expired bool) {
	id := x.ID
	h.srv.sessions.Remove(id)
	h.srv.ends.endOne(id)
	c := h.srv.conns.of(id)
	if expired {
		var open *insight.OpenConnection
		if c != nil {
			open = c.open()
		}
		h.srv.expired.Add(x, ephemerals, open)
	} else {
		h.srv.expired.Reconnected(id)
	}
	if c == nil {
		return
	}
	h.srv.conns.unbind(c, id)
	if expired {
		c.client.Disconnect(ReasonExpired)
		return
	}
	h.closedElsewhere = append(h.closedElsewhere, c)
}

// SessionDeadlines returns, on the leader, when the ensemble's sessions expire unless their
// clients send something, and this server's local ones, in milliseconds since the epoch. Elsewhere it is empty.
func (s *Server) SessionDeadlines() map[int64][]znode.SessionID {
	all := s.sessions.Deadlines()
	if s.sessions.Leads() {
		for at, ids := range s.local.Deadlines() {
			all[at] = append(all[at], ids...)
		}
	}
	return all
}

// What follows is for sessions whose clients have no connection but send one
// request at a time, to any server (HTTP). Their commands carry FlagAnyServer.

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
	_, err := s.fresh.Within(ctx, 0)
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

// sessionEnds wakes those that wait for the end of a session.
type sessionEnds struct {
	mu      sync.Mutex // protects the field below
	waiting map[znode.SessionID]map[*sessionEnd]struct{}
}

// sessionEnd is one that waits.
type sessionEnd struct{ done chan struct{} }

func (t *sessionEnds) add(id znode.SessionID, e *sessionEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[id] == nil {
		t.waiting[id] = map[*sessionEnd]struct{}{}
	}
	t.waiting[id][e] = struct{}{}
}

func (t *sessionEnds) remove(id znode.SessionID, e *sessionEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.waiting[id], e); len(t.waiting[id]) == 0 {
		delete(t.waiting, id)
	}
}

// end wakes those that wait for the end of the sessions of which ended is true.
func (t *sessionEnds) end(ended func(znode.SessionID) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, waiting := range t.waiting {
		if ended(id) {
			t.wakeLocked(id, waiting)
		}
	}
}

// endOne is end for one session.
func (t *sessionEnds) endOne(id znode.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked(id, t.waiting[id])
}

func (t *sessionEnds) wakeLocked(id znode.SessionID, waiting map[*sessionEnd]struct{}) {
	for e := range waiting {
		close(e.done)
	}
	delete(t.waiting, id)
}
