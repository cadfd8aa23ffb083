package consensus

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// testNet is the network between the servers of a testEnsemble: TCP, of which
// single servers can be cut off.
type testNet struct {
	mu    sync.Mutex // protects the fields below
	addr  map[string]int
	cut   map[int]bool
	conns map[net.Conn][2]int
	dials [8]int // by the server that was dialled
}

func (t *testNet) dial(from int) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		t.mu.Lock()
		to := t.addr[addr]
		t.dials[to]++
		refused := t.cut[from] || t.cut[to]
		t.mu.Unlock()
		if refused {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.cut[from] || t.cut[to] {
			c.Close()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		t.conns[c] = [2]int{from, to}
		return c, nil
	}
}

func (t *testNet) dialled(i int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dials[i]
}

// sever ends all connections of a server; it may connect again.
func (t *testNet) sever(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c, ends := range t.conns {
		if ends[0] == i || ends[1] == i {
			c.Close()
			delete(t.conns, c)
		}
	}
}

// setCut cuts a server off, or lets it back.
func (t *testNet) setCut(i int, cut bool) {
	t.mu.Lock()
	t.cut[i] = cut
	t.mu.Unlock()
	if cut {
		t.sever(i)
	}
}
