package mux

import (
	"context"
	"net"
)

// httpListener gives a server of HTTP the connections of KindHTTP.
type httpListener struct {
	m   *Mux
	ctx context.Context // ends with Close, and with the mux
	end context.CancelFunc
}

// ListenHTTP returns the listener of KindHTTP, whose connections are refused before and when it is closed. It is
// called once.
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
