package server

import (
	"errors"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// readOnlyGrace is how long a server must have been out of touch before it is in read-only mode, if a tick is not
// longer: most elections are over by then (ZooKeeper's QuorumPeer).
const readOnlyGrace = 2 * time.Second

// ReadOnlyMode is how a server that is out of touch with a majority answers the reads of clients that allow it, if
// Config.ReadOnly is set. The sessions that it gives are in no table and no log, and end with their connections
// (docs/adr/0039). Clients with local sessions of this server go on with them.
type ReadOnlyMode struct {
	srv *Server

	mu    sync.Mutex // protects the fields below
	begun bool       // the mode is on, as far as anyone has noticed, and as the log has it
	from  int64      // Server.nextSession when it began last
}

// On reports whether the server is in read-only mode. One that has not been in touch since its start never is: what it
// has is its newest snapshot, and only a leader knows which entries of its log belong to the state.
func (m *ReadOnlyMode) On() bool {
	s := m.srv
	return s.cfg.ReadOnly && !s.Source.TakesClients() && m.Readable() && s.Source.offline.Load() != never &&
		max(s.Status().Contact, s.Source.silence()) > max(readOnlyGrace, s.cfg.Tick)
}

// Readable reports whether what this server has is a state that the ensemble once had, perhaps an old one, and the
// server is to serve.
func (m *ReadOnlyMode) Readable() bool {
	s := m.srv
	return !s.draining.Load() && s.catchUp.hasCaughtUp() && s.Status().Halt == nil
}

// Mode is the server's role, or "read-only", as four-letter words print it.
func (m *ReadOnlyMode) Mode() string {
	if m.On() {
		return "read-only"
	}
	return string(m.srv.Status().Role)
}

// round ends the mode's connections when the server takes other clients again, so that theirs come back with sessions
// that may write, and those whose clients have been silent for their timeouts. Housekeeping calls it; paused says that
// this server may not have read what clients sent.
func (m *ReadOnlyMode) round(now time.Time, paused bool) {
	if !m.srv.cfg.ReadOnly {
		return
	}
	m.notice()
	over := m.srv.Source.TakesClients()
	m.srv.conns.disconnectReadOnly(now, paused, over)
}

// notice finds out whether the mode has begun, or ended.
func (m *ReadOnlyMode) notice() {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch on := m.On(); {
	case on && !m.begun:
		m.begun, m.from = true, m.srv.nextSession.Load()
		m.srv.logger.Info("read-only mode begins")
	case m.begun && !on:
		m.begun = false
		m.srv.logger.Info("read-only mode ends")
	}
}

// NewConn is Server.NewConn for a client of read-only mode: it gets a session of the mode, or goes on with a local one.
// Housekeeping may not have noticed the mode yet.
func (m *ReadOnlyMode) NewConn(client Client, identities []znode.ID) *Conn {
	m.notice()
	return newConn(m.srv, client, identities, true)
}

// readOnlyOpen gives a connection of read-only mode a session. Its Done is that of the request.
type readOnlyOpen struct {
	Op
	c *Conn
	x session.Session
}

// Read implements Op.
func (o readOnlyOpen) Read(v *View) {
	r := state.Result{Op: state.OpCreateSession, Zxid: v.Zxid(), Session: &o.x}
	if v.machine.Sessions().Get(o.x.ID) != nil {
		r.Code = znode.ErrNodeExists
	} else {
		o.c.mu.Lock()
		o.c.session, o.c.timeout, o.c.local = o.x.ID, o.x.Timeout, true
		o.c.mu.Unlock()
	}
	o.Done(v, &r)
}

// errElsewhere ends the connection of a client whose session is replicated, or may be, without an answer. Told that it
// is connected, it would go on to rely on what the session owns, while the majority may have ended it.
var errElsewhere = errors.New("this server is in read-only mode, and the client's session may go on elsewhere")

// attachReadOnly is AttachSession in read-only mode: for local sessions alone.
func (c *Conn) attachReadOnly(id znode.SessionID, password session.Password, timeout time.Duration, op Op) error {
	if x, ok := c.server.local.attach(c, id, password, timeout); ok {
		return c.Read(readOnlyAttach{localAttach{op, x}})
	}
	if !c.server.ReadOnly.gave(id) {
		return errElsewhere
	}
	return c.Read(refusedWrite{op, state.OpAttach, znode.ErrSessionExpired})
}

// gave reports whether a session was one of read-only mode, since that is on.
func (m *ReadOnlyMode) gave(id znode.SessionID) (yes bool) {
	m.mu.Lock()
	from := m.from
	m.mu.Unlock()
	if from == 0 || int64(id) <= from || int64(id) > m.srv.nextSession.Load() {
		return false
	}
	m.srv.View(func(v *View) { yes = v.machine.Sessions().Get(id) == nil })
	return yes
}

// readOnlyAttach answers a client that comes back to its local session. No log can show the outcome of its last writes.
type readOnlyAttach struct{ localAttach }

// Read implements Op.
func (o readOnlyAttach) Read(v *View) { o.Done(v, &state.Result{Zxid: v.Zxid()}) }

// disconnectReadOnly disconnects the connections of read-only mode whose clients have been silent for their timeouts,
// or all because the mode is over.
func (t *connections) disconnectReadOnly(now time.Time, paused, over bool) {
	out := map[*Conn]Reason{}
	t.mu.Lock()
	for c := range t.readOnly {
		if paused || c.touched.Load() {
			c.heard = now
		}
		switch id, timeout := c.Session(); {
		case over:
			out[c] = ReasonReadOnlyOver
		case id != 0 && now.Sub(c.heard) > timeout:
			out[c] = ReasonExpired
		}
	}
	t.mu.Unlock()
	for c, why := range out {
		c.client.Disconnect(why)
	}
}
