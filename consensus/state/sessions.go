package state

import (
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// openSession adds a new session, owned by the server that accepted the client.
// ErrNodeExists means that the id is taken and another must be tried.
func (m *Machine) openSession(c *Command, from ServerID) {
	s := session.Session{
		ID: c.Session, Timeout: c.Timeout, Password: c.Password, Owner: uint64(from),
	}
	if !m.sessions.Add(s) {
		m.result.Code = znode.ErrNodeExists
		return
	}
	m.result.Session = m.sessions.Get(c.Session)
}

// attach moves a session to the server to which its client has connected. It is
// not a transaction: clients expect consecutive zxids on a quiet server.
func (m *Machine) attach(c *Command, from ServerID, obs Observer) {
	former, ok := m.sessions.Attach(c.Session, c.Password, c.Timeout, uint64(from))
	if !ok {
		m.result.Code = znode.ErrSessionExpired
		return
	}
	m.result.Session = m.sessions.Get(c.Session)
	obs.SessionAttached(m.result.Session, ServerID(former))
}
