package mux

import (
	"net"
	"sync"
)

// noListener stands in for a peer port where there is none.
type noListener struct {
	closed chan struct{}
	once   sync.Once
}

// NoListener returns a listener on which nobody comes: for a lone server, and for a program that only asks.
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
