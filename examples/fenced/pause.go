package main

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Wire is a client's dialer that can go dead, as the network does or as it looks
// to everybody else when a process is stopped.
type Wire struct {
	mu    sync.Mutex // protects the fields below
	dead  bool
	conns []net.Conn
}

// Dial is a client.DialFunc.
func (w *Wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		conn.Close()
		return nil, errors.New("the wire is dead")
	}
	w.conns = append(w.conns, conn)
	return conn, nil
}

// Die breaks the connections, and lets none through until Revive.
func (w *Wire) Die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for _, conn := range w.conns {
		conn.Close()
	}
	w.conns = nil
}

// Revive lets connections through again.
func (w *Wire) Revive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = false
}
