package mux

import (
	"container/list"
	"errors"
	"net"
	"os"
	"sync/atomic"
)

// Conn is an established connection between two servers, its hello done.
type Conn struct {
	net.Conn

	mux     *Mux
	kind    Kind
	peer    uint64
	inbound bool
	ended   atomic.Bool // the end of an inbound raft connection has been reported

	stranger *list.Element // its place among the strangers, protected by Mux.mu; nil: it is none
}

// Kind is what the connection carries, by its hello.
func (c *Conn) Kind() Kind { return c.kind }

// ServerID is the other server's id: inbound the one it gave in its hello (0 on a control
// connection of a server that has none yet), outbound the one that was asked for (0 when any
// would do).
func (c *Conn) ServerID() uint64 { return c.peer }

// Read reads from the connection. An error reports its end.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.reportEnd()
	}
	return n, err
}

// reportEnd reports once that an inbound raft connection has ended (SetRaft). It is called at the first
// error of Read and, because a Write may meet the end first, when the connection is closed.
func (c *Conn) reportEnd() {
	if !c.inbound || !c.kind.raft() || c.ended.Swap(true) {
		return
	}
	if f := c.mux.raftEnded.Load(); f != nil {
		(*f)()
	}
}

// Close closes the connection and makes the mux forget it.
func (c *Conn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// abort closes at once: TLS would send an alert first, and wait for it.
func (c *Conn) abort() {
	c.forget()
	abort(c.Conn)
}

func (c *Conn) forget() {
	c.reportEnd()
	m := c.mux
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.conns[c]; !ok {
		return
	}
	delete(m.conns, c)
	switch {
	case c.stranger != nil:
		m.strangers.Remove(c.stranger)
	case c.inbound:
		m.inbound--
	}
}

// Known says that the other side has shown who it is: it gives way to no stranger any more.
func (c *Conn) Known() {
	m := c.mux
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.conns[c]; ok && c.stranger != nil {
		m.strangers.Remove(c.stranger)
		c.stranger = nil
		m.inbound++
	}
}

func abort(c net.Conn) {
	if inner, ok := c.(interface{ NetConn() net.Conn }); ok {
		inner.NetConn().Close()
	}
	c.Close()
}
