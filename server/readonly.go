package server

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// readOnlyGrace is how long a server must have been out of touch before it is in read-only mode, if a tick is not
// longer: most elections are over by then (ZooKeeper's QuorumPeer).
const readOnlyGrace = 2 * time.Second

// ReadOnlyMode is how a server that is out of touch with a majority answers the reads of clients that allow it, if
// Config.ReadOnly is set. The sessions that it gives are this server's alone: they are in no log, own nothing, and end
// with their connections (docs/adr/0039).
type ReadOnlyMode struct {
	srv      *Server
	firstID  znode.SessionID // of the sessions that this run of the server has opened
	reported bool            // On, as the log has it; housekeeping's own
}

// On reports whether the server is in read-only mode. One that has not been in touch since its start never is: what it
// has is its newest snapshot, and only a leader knows which entries of its log belong to the state.
func (m *ReadOnlyMode) On() bool {
	s := m.srv
	if !s.cfg.ReadOnly || s.Source.TakesClients() || s.draining.Load() || !s.catchUp.hasCaughtUp() {
		return false
	}
	status, silence := s.Status(), s.Source.silence()
	return status.Halt == nil && s.Source.offline.Load() != never &&
		max(status.Contact, silence) > max(readOnlyGrace, s.cfg.Tick)
}

// Mode is the server's role, or "read-only", as four-letter words print it.
func (m *ReadOnlyMode) Mode() string {
	if m.On() {
		return "read-only"
	}
	return string(m.srv.Status().Role)
}

// Ended reports whether an id is that of a session, of read-only mode or not, that this run of the server has opened
// and that has ended. Any other session may go on elsewhere.
func (m *ReadOnlyMode) Ended(id znode.SessionID) (yes bool) {
	if id <= m.firstID || int64(id) > m.srv.nextSession.Load() {
		return false
	}
	m.srv.View(func(v *View) {
		_, local := v.local.Get(id)
		yes = !local && v.machine.Sessions().Get(id) == nil
	})
	return yes
}

// round ends the mode's connections when the server takes other clients again, so that theirs come back with sessions
// that may write, and those whose clients have been silent for their timeouts. Housekeeping calls it; paused says that
// this server may not have read what clients sent.
func (m *ReadOnlyMode) round(now time.Time, paused bool) {
	if !m.srv.cfg.ReadOnly {
		return
	}
	on := m.On()
	if on != m.reported {
		m.srv.logger.Info("read-only mode: "+map[bool]string{true: "on", false: "off"}[on], "role", m.srv.Status().Role)
	}
	m.reported = on
	over := m.srv.Source.TakesClients()
	m.srv.conns.disconnectReadOnly(now, paused, over)
}

// NewConn is Server.NewConn for a client that gets a session of read-only mode (Conn.OpenReadOnly), or none.
func (m *ReadOnlyMode) NewConn(client Client, identities []znode.ID) *Conn {
	return newConn(m.srv, client, identities, true)
}

// OpenReadOnly gives a connection of the mode a session. op.Done gets the result, ErrNodeExists if the id is
// that of another session.
func (c *Conn) OpenReadOnly(timeout time.Duration, op Op) error {
	return c.Read(&opening{op, c, c.server.NewSession(timeout)})
}

// opening is a session of read-only mode that is opened.
type opening struct {
	Op
	c *Conn
	x *state.Command
}

// Read implements Op.
func (o *opening) Read(v *View) {
	r := &state.Result{Op: o.x.Op, Zxid: v.Zxid(), Code: znode.ErrNodeExists}
	if v.machine.Sessions().Get(o.x.Session) == nil {
		r.Code = znode.OK
		r.Session = &session.Session{ID: o.x.Session, Password: o.x.Password, Timeout: o.x.Timeout}
		o.c.server.conns.bindReadOnly(o.c, r.Session)
	}
	o.Done(v, r)
}

// bindReadOnly is bind for a session of read-only mode.
func (t *connections) bindReadOnly(c *Conn, x *session.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.session, c.timeout = x.ID, x.Timeout
	c.heard = time.Now()
	t.readOnly[c] = struct{}{}
}

// disconnectReadOnly disconnects the connections of read-only mode whose clients have been silent for their timeouts, or
// all because the mode is over.
func (t *connections) disconnectReadOnly(now time.Time, paused, over bool) {
	out := map[*Conn]Reason{}
	t.mu.Lock()
	for c := range t.readOnly {
		if paused || c.touched.Load() {
			c.heard = now
		}
		switch _, timeout := c.Session(); {
		case over:
			out[c] = ReasonReadOnlyOver
		case now.Sub(c.heard) > timeout:
			out[c] = ReasonExpired
		}
	}
	t.mu.Unlock()
	for c, why := range out {
		c.client.Disconnect(why)
	}
}

// refusedReadOnly is the code of a command of a session of read-only mode: what ReadOnlyRequestProcessor answers.
func refusedReadOnly(op state.Op) znode.Error {
	if op == state.OpCloseSession {
		return znode.OK // nothing of it is in the log
	}
	return znode.ErrNotReadOnly
}
