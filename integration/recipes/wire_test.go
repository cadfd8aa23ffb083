package recipes_test

import (
	"context"
	"errors"
	"net"
	"sync"
)

// wire is a client's dialer whose connections can be cut.
type wire struct {
	mu      sync.Mutex // protects the fields below
	blocked bool
	conns   map[net.Conn]bool
}

// dial is a client.DialFunc.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked {
		conn.Close()
		return nil, errors.New("the wire is cut")
	}
	c := &wired{conn, w}
	w.conns[c] = true
	return c, nil
}

// cut breaks the connections that there are.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.(*wired).Conn.Close() // the client calls Close, which takes the lock
	}
}

// block cuts, and lets no new connection through until it is called with false.
func (w *wire) block(on bool) {
	w.mu.Lock()
	w.blocked = on
	w.mu.Unlock()
	if on {
		w.cut()
	}
}

// wired is one connection.
type wired struct {
	net.Conn
	w *wire
}

// Close closes the connection.
func (c *wired) Close() error {
	c.w.mu.Lock()
	delete(c.w.conns, c)
	c.w.mu.Unlock()
	return c.Conn.Close()
}
