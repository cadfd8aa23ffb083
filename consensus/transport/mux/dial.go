package mux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

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

// newHello makes the hello of this server.
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
