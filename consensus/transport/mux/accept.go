package mux

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// listen accepts until the listener is closed.
func (m *Mux) listen() {
	defer m.wg.Done()
	const minPause, maxPause = 5 * time.Millisecond, time.Second
	pause := minPause
	for {
		c, err := m.cfg.Listener.Accept()
		if err == nil {
			pause = minPause
			m.startHandshake(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) || m.ctx.Err() != nil {
			return
		}
		// Most likely no file descriptor is free. That passes, and a busy loop would not help.
		m.warn("accepting a peer connection failed", "error", err, "retry_in", pause)
		select {
		case <-time.After(pause):
		case <-m.ctx.Done():
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// startHandshake starts the hello on a goroutine of its own. If too many others have not sent theirs, the one that
// has waited longest is closed: a server sends its hello at once, and strangers may wait forever.
func (m *Mux) startHandshake(raw net.Conn) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		raw.Close()
		return
	}
	var oldest net.Conn
	if m.awaiting.Len() >= maxHellos {
		oldest, _ = m.awaiting.Remove(m.awaiting.Front()).(net.Conn)
	}
	place := m.awaiting.PushBack(raw)
	m.mu.Unlock()
	if oldest != nil {
		m.warn("peer connection closed: it has sent no hello, and too many others wait",
			"remote", oldest.RemoteAddr(), "bound", maxHellos)
		oldest.Close()
	}
	m.wg.Add(1)
	go func() {
		defer m.wg.Done()
		m.handshake(raw)
		m.mu.Lock()
		m.awaiting.Remove(place)
		m.mu.Unlock()
	}()
}

// handshake reads the hello, answers it, and queues the connection for Accept.
func (m *Mux) handshake(raw net.Conn) {
	raw.SetDeadline(time.Now().Add(m.cfg.HelloTimeout))
	h, err := readHello(raw)
	var refusal *RefusedError
	switch {
	case errors.Is(err, errSilent):
		m.logger.Debug("silent peer connection ended", "remote", raw.RemoteAddr(), "error", err)
		raw.Close()
		return
	case err != nil && !errors.As(err, &refusal):
		m.Refused.Add(1)
		m.warn("peer connection closed: no valid hello", "remote", raw.RemoteAddr(), "error", err)
		raw.Close()
		return
	}
	var c *Conn
	if refusal == nil {
		refusal = m.verify(raw, h)
	}
	if refusal == nil {
		c, refusal = m.admit(raw, h, m.cfg.Guard.Stranger(raw))
	}
	// Check again, now that CutServer would find it: the key may have been revoked meanwhile.
	if refusal == nil {
		if refusal = m.verify(raw, h); refusal != nil {
			m.leave(c)
		}
	}
	if refusal != nil {
		m.Refused.Add(1)
		m.warn("peer connection refused", "remote", raw.RemoteAddr(), "kind", h.kind,
			"server", h.from, "reason", refusal.Reason)
		_, _ = raw.Write(appendAnswer(nil, refusal)) // the reason, if the other side still reads
		raw.Close()
		return
	}
	if _, err := raw.Write(appendAnswer(nil, nil)); err != nil {
		m.logger.Debug("peer connection ended in its hello", "remote", raw.RemoteAddr(),
			"error", err)
		m.leave(c)
		_ = c.Close()
		return
	}
	raw.SetDeadline(time.Time{})
	m.queues[h.kind] <- c // never blocks: admit reserved the place
}

// admit checks the hello against this server's identity and bounds, and reserves a place in the
// queue. If there are too many strangers, it closes the oldest one's connection.
func (m *Mux) admit(raw net.Conn, h hello, stranger bool) (*Conn, *RefusedError) {
	m.mu.Lock()
	c, refusal := m.admitLocked(raw, h, stranger)
	var first *Conn
	if m.strangers.Len() > maxStrangers {
		first, _ = m.strangers.Front().Value.(*Conn)
	}
	m.mu.Unlock()
	if first != nil {
		m.warn("peer connection of a stranger closed: too many others have come", "remote", first.RemoteAddr(),
			"limit", maxStrangers)
		first.abort()
	}
	return c, refusal
}

func (m *Mux) admitLocked(raw net.Conn, h hello, stranger bool) (*Conn, *RefusedError) {
	if r := m.checkIdentityLocked(h); r != nil {
		return nil, r
	}
	switch {
	case m.closed:
		return nil, refuse(RefusedBusy, "the server is stopping")
	case h.kind.raft() && m.gate != gateOpen:
		return nil, refuse(RefusedCut, "the server takes no raft connections at the moment")
	case h.kind == KindHTTP && !m.http:
		return nil, refuse(RefusedKind, "this server serves no HTTP")
	case !stranger && m.inbound >= maxInbound:
		return nil, refuse(RefusedBusy, "%d peer connections are open, the most allowed", m.inbound)
	case m.waiting[h.kind] >= maxQueue:
		return nil, refuse(RefusedBusy, "%d %v connections wait to be accepted, the most allowed",
			m.waiting[h.kind], h.kind)
	}
	m.waiting[h.kind]++
	c := &Conn{Conn: raw, mux: m, kind: h.kind, peer: h.from, inbound: true}
	m.conns[c] = struct{}{}
	if stranger {
		c.stranger = m.strangers.PushBack(c)
	} else {
		m.inbound++
	}
	return c, nil
}

// verify asks the Guard.
func (m *Mux) verify(raw net.Conn, h hello) *RefusedError {
	if err := m.cfg.Guard.Verify(raw, h.kind, h.from); err != nil {
		return refuse(RefusedServer, "the sender has not proved to be server %d: %v", h.from, err)
	}
	return nil
}

// leave gives back what admit has reserved.
func (m *Mux) leave(c *Conn) {
	m.mu.Lock()
	m.waiting[c.kind]--
	m.mu.Unlock()
	c.forget()
}

// checkIdentityLocked checks the sender and the wanted receiver of a hello. All kinds but control need
// both sides in the same ensemble. Control needs no ensemble on either side, so that one can be bootstrapped and
// joined, but two different ones are a mistake. If the hello wants a server id, this server must have it.
func (m *Mux) checkIdentityLocked(h hello) *RefusedError {
	none := [16]byte{}
	control := h.kind == KindControl
	switch {
	case !control && m.id == NoServer:
		return refuse(RefusedNotFormed, "this server belongs to no ensemble yet")
	case !control && h.from >= NoServer:
		return refuse(RefusedMalformed, "a %v connection needs the sender's server id", h.kind)
	case h.ensemble != m.ensemble && !(control && (h.ensemble == none || m.ensemble == none)):
		return refuse(RefusedEnsemble, "this server belongs to ensemble %x, the sender to %x",
			m.ensemble, h.ensemble)
	case h.to != NoServer && m.id == NoServer:
		return refuse(RefusedNotFormed, "this server has no id yet; the sender wants server %d", h.to)
	case h.to != NoServer && h.to != m.id:
		return refuse(RefusedServer, "this is server %d; the sender wants server %d", m.id, h.to)
	}
	return nil
}

// warn logs a warning that any program can cause, at a limited rate. After Close it logs at debug level, because
// connections that end with the mux are no problem.
func (m *Mux) warn(msg string, args ...any) {
	level := slog.LevelDebug
	if pass, leftOut := m.repeats.Pass(msg); pass && m.ctx.Err() == nil {
		level = slog.LevelWarn
		args = append(args, "left_out", leftOut)
	}
	m.logger.Log(m.ctx, level, msg, args...)
}

// httpListener gives an HTTP server the connections of KindHTTP.
type httpListener struct {
	m   *Mux
	ctx context.Context // ends with Close, and with the mux
	end context.CancelFunc
}

// ListenHTTP returns the listener of KindHTTP. Connections of this kind are refused before the call and after the
// listener is closed. It is called once.
func (m *Mux) ListenHTTP() net.Listener {
	l := &httpListener{m: m}
	l.ctx, l.end = context.WithCancel(m.ctx)
	m.setHTTP(true)
	return l
}

func (m *Mux) setHTTP(served bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.http = served
}

func (l *httpListener) Accept() (net.Conn, error) { return l.m.accept(l.ctx, KindHTTP) }

func (l *httpListener) Close() error {
	l.m.setHTTP(false)
	l.end()
	return nil
}

func (l *httpListener) Addr() net.Addr { return l.m.Addr() }

// noListener replaces the peer port where there is none.
type noListener struct {
	closed chan struct{}
	once   sync.Once
}

// NoListener returns a listener that accepts no connection: for a lone server, and for a program that only asks.
func NoListener() net.Listener { return &noListener{closed: make(chan struct{})} }

func (l *noListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l *noListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *noListener) Addr() net.Addr { return &net.TCPAddr{} }
