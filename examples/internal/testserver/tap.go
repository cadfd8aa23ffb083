package testserver

import (
	"context"
	"errors"
	"net"
	"sync"
)

// errBlocked is what dialling through a blocked tap ends with.
var errBlocked = errors.New("testserver: the connection is blocked")

// Tap is a client's dialer whose connections a test can cut.
type Tap struct {
	mu      sync.Mutex // protects the fields below
	blocked bool
	conns   map[net.Conn]bool
}

// Dial is a client.DialFunc.
func (t *Tap) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	t.mu.Lock()
	blocked := t.blocked
	t.mu.Unlock()
	if blocked {
		return nil, errBlocked
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.blocked { // since we have looked
		conn.Close()
		return nil, errBlocked
	}
	c := &tapped{Conn: conn, tap: t}
	t.conns[c] = true
	return c, nil
}

// Cut breaks the connections that there are. The client makes another.
func (t *Tap) Cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		c.(*tapped).Conn.Close() // the client calls Close, which takes the lock
	}
}

// Block breaks the connections and lets no new one through until Unblock. To the
// servers and to all others the client's process is as good as dead: nothing of it
// arrives, not even that its session shall be closed.
func (t *Tap) Block() {
	t.mu.Lock()
	t.blocked = true
	t.mu.Unlock()
	t.Cut()
}

// Unblock ends a Block.
func (t *Tap) Unblock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocked = false
}

// tapped is one connection.
type tapped struct {
	net.Conn
	tap *Tap
}

// Close closes the connection.
func (c *tapped) Close() error {
	c.tap.mu.Lock()
	delete(c.tap.conns, c)
	c.tap.mu.Unlock()
	return c.Conn.Close()
}
