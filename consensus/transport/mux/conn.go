package mux

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
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

// Dial connects to the server at addr and does the hello. wantID is the server id that it must
// have, NoServer when any will do. All but control connections need SetIdentity first. A server that
// answers and declines gives a *RefusedError. The mux closes the connection at Close at the latest.
func (m *Mux) Dial(
	ctx context.Context, kind Kind, addr string, wantID uint64,
) (*Conn, error) {
	if !kind.valid() {
		return nil, fmt.Errorf("mux: dialling %s: unknown %v", addr, kind)
	}
	h, err := m.newHello(kind, wantID)
	if err != nil {
		return nil, fmt.Errorf("mux: dialling %s for a %v connection: %w", addr, kind, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	raw, err := m.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("mux: dialling %s for a %v connection: %w", addr, kind, err)
	}
	if raw, err = m.cfg.Guard.Secure(ctx, raw, kind, addr); err != nil {
		return nil, fmt.Errorf("mux: dialling %s for a %v connection: %w", addr, kind, err)
	}
	if err := m.sendHello(ctx, raw, h); err != nil {
		raw.Close()
		var refusal *RefusedError
		if errors.As(err, &refusal) {
			refusal.Addr = addr
			return nil, refusal
		}
		return nil, fmt.Errorf("mux: the hello to %s for a %v connection: %w", addr, kind, err)
	}
	c := &Conn{Conn: raw, mux: m, kind: kind, peer: wantID}
	if err := m.register(c); err != nil {
		raw.Close()
		return nil, fmt.Errorf("mux: dialling %s for a %v connection: %w", addr, kind, err)
	}
	return c, nil
}

// DialMember connects to the server that raft's configuration has at addr, and to no other that may
// answer there by now.
func (m *Mux) DialMember(kind Kind, addr string, timeout time.Duration) (*Conn, error) {
	want := NoServer
	if f := m.member.Load(); f != nil {
		want = (*f)(addr)
	}
	ctx := m.raftClosed
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return m.Dial(ctx, kind, addr, want)
}

// DialBare connects without TLS and a hello, for a probe whether anything accepts at addr. The caller closes
// the connection.
func (m *Mux) DialBare(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	return m.cfg.Dial(ctx, addr)
}

var (
	errNoIdentity = errors.New("this server belongs to no ensemble yet")
	errRaftCut    = errors.New("this server's raft connections are cut")
)

// newHello returns this server's hello.
func (m *Mux) newHello(kind Kind, wantID uint64) (hello, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.mayDialLocked(kind); err != nil {
		return hello{}, err
	}
	if kind != KindControl && m.id == NoServer {
		return hello{}, errNoIdentity
	}
	return hello{kind: kind, ensemble: m.ensemble, from: m.id, to: wantID}, nil
}

func (m *Mux) mayDialLocked(kind Kind) error {
	switch {
	case m.closed || kind.raft() && m.gate == gateClosed:
		return net.ErrClosed
	case kind.raft() && m.gate == gateCut:
		return errRaftCut
	}
	return nil
}

// sendHello sends the hello and reads the answer.
func (m *Mux) sendHello(ctx context.Context, raw net.Conn, h hello) error {
	raw.SetDeadline(time.Now().Add(m.cfg.HelloTimeout))
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	err := func() error {
		if _, err := raw.Write(h.append(nil)); err != nil {
			return fmt.Errorf("sending the hello: %w", err)
		}
		return readAnswer(raw)
	}()
	if !stop() {
		return context.Cause(ctx) // the deadline in the past may already be set
	}
	if err == nil {
		raw.SetDeadline(time.Time{})
	}
	return err
}

// register makes an outbound connection one of those that Close and CutRaft close.
func (m *Mux) register(c *Conn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.mayDialLocked(c.kind); err != nil {
		return err
	}
	m.conns[c] = struct{}{}
	return nil
}

// Kind is what the connection carries, by its hello.
func (c *Conn) Kind() Kind { return c.kind }

// ServerID is the other server's id: inbound the one in its hello (NoServer on a control
// connection of a server that has none yet), outbound the one that Dial was asked for (NoServer
// when any would do).
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

// Known marks the other side as one that has proved who it is: it no longer gives way to strangers.
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
