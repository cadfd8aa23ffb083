package consensus

import (
	"net"
	"sync"
)

// noListener stands in for a peer port that a lone server does not have.
type noListener struct {
	closed chan struct{}
	once   sync.Once
}

func newNoListener() *noListener { return &noListener{closed: make(chan struct{})} }

func (l *noListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l *noListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *noListener) Addr() net.Addr { return &net.TCPAddr{} }
