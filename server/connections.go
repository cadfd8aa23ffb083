package server

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// connections are a server's connections, the sessions that they carry, and the
// sessions whose clients sent something since the last report to the leader.
type connections struct {
	mu    sync.Mutex // protects the fields below
	all   map[*Conn]struct{}
	bound map[znode.SessionID]*Conn
	// readOnly are those of read-only mode. Only if they carry local sessions are they in bound.
	readOnly map[*Conn]struct{}
	// touchedAlone are sessions that were touched and have no connection here: it has
	// ended, or they never had one (HTTP).
	touchedAlone map[znode.SessionID]struct{}

	touchedMu sync.Mutex // protects touched; nothing else is locked under it
	// touched are the connections from which something came. The silent ones are not
	// visited: of thousands of idle sessions, few have sent something.
	touched []*Conn
}

func newConnections() *connections {
	return &connections{
		all:          map[*Conn]struct{}{},
		bound:        map[znode.SessionID]*Conn{},
		readOnly:     map[*Conn]struct{}{},
		touchedAlone: map[znode.SessionID]struct{}{},
	}
}

func (t *connections) add(c *Conn) {
	t.mu.Lock()
	t.all[c] = struct{}{}
	if c.readOnly {
		t.readOnly[c], c.heard = struct{}{}, time.Now()
	}
	t.mu.Unlock()
}

// remove takes c out, which carried this session, and reports whether it did until now.
func (t *connections) remove(c *Conn, id znode.SessionID) (carried bool) {
	t.mu.Lock()
	delete(t.all, c)
	delete(t.readOnly, c)
	carried = t.bound[id] == c
	t.mu.Unlock()
	t.unbind(c, id)
	return carried
}

// lastHeard is about when something last came from c's client; zero: not known.
func (t *connections) lastHeard(c *Conn) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.touched.Load() {
		return time.Now()
	}
	return c.heard
}

// bind makes c the connection of a session on this server. It returns the one that was before, if there is one.
func (t *connections) bind(c *Conn, x *session.Session, local bool) (former *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil // and Close will not find it
	}
	if former = t.bound[x.ID]; former == c {
		former = nil
	}
	c.session, c.timeout, c.local = x.ID, x.Timeout, local
	t.bound[x.ID] = c
	return former
}

// unbind undoes bind.
func (t *connections) unbind(c *Conn, id znode.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bound[id] != c {
		return
	}
	delete(t.bound, id)
	if c.touched.Load() {
		t.touchedAlone[id] = struct{}{}
	}
}

// of returns the connection that carries a session here; nil: none does.
func (t *connections) of(id znode.SessionID) *Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bound[id]
}

// Touch notes that the client sent something, whatever it is.
func (c *Conn) Touch() {
	t := c.server.conns
	if !c.touched.Load() && c.touched.CompareAndSwap(false, true) { // written rarely, so that the line stays shared
		t.touchedMu.Lock()
		t.touched = append(t.touched, c)
		t.touchedMu.Unlock()
	}
}

// touchSession notes that something came from a client without a connection.
func (t *connections) touchSession(id znode.SessionID) {
	t.mu.Lock()
	t.touchedAlone[id] = struct{}{}
	t.mu.Unlock()
}

// takeTouched returns the sessions that were touched since the last call; with all,
// also those of the silent connections.
func (t *connections) takeTouched(all bool) (ids []znode.SessionID) {
	t.mu.Lock() // also while Conn.touched is cleared, or unbind would miss that it is set
	defer t.mu.Unlock()
	t.touchedMu.Lock()
	conns := t.touched
	t.touched = nil
	t.touchedMu.Unlock()
	now := time.Now()
	for _, c := range conns {
		c.touched.Store(false)
		c.heard = now
	}
	if all {
		ids = slices.AppendSeq(ids, maps.Keys(t.bound))
	} else {
		for _, c := range conns {
			if id, _ := c.Session(); t.bound[id] == c {
				ids = append(ids, id)
			}
		}
	}
	ids = slices.AppendSeq(ids, maps.Keys(t.touchedAlone))
	clear(t.touchedAlone)
	return ids
}

// disconnect disconnects the connections of which which is true.
func (t *connections) disconnect(r Reason, which func(c *Conn) bool) {
	t.mu.Lock()
	var out []*Conn
	for c := range t.all {
		if which(c) {
			out = append(out, c)
		}
	}
	t.mu.Unlock()
	for _, c := range out {
		c.client.Disconnect(r)
	}
}

func (t *connections) disconnectAll(r Reason) {
	t.disconnect(r, func(*Conn) bool { return true })
}

// Connection returns the connection that carries a session on this server; nil: none does.
func (s *Server) Connection(id znode.SessionID) *Conn { return s.conns.of(id) }

// Who returns who is connected.
func (c *Conn) Who() insight.Client {
	return insight.Client{Address: c.client.Address(), Identities: c.Identities()}
}

// LastHeard returns about when something last came from the client; zero: not known.
func (c *Conn) LastHeard() time.Time { return c.server.conns.lastHeard(c) }

// open returns the connection as the record of a session that expires has it.
func (c *Conn) open() *insight.OpenConnection {
	return &insight.OpenConnection{Client: c.Who(), LastByte: c.LastHeard(), Watches: c.watcher.Paths()}
}
