//go:build unix

package client

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// stuckConn is a server's end of a connection that stops reading on request, and later
// skips the bytes that were written meanwhile.
type stuckConn struct {
	net.Conn

	mu      sync.Mutex // protects the fields below
	stuck   chan struct{}
	dropped int // bytes that were read while it was stuck
	skip    int // bytes to be dropped
}

func (c *stuckConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		c.mu.Lock()
		stuck := c.stuck
		if stuck != nil {
			c.dropped += n
		}
		c.mu.Unlock()
		if stuck != nil {
			<-stuck
			continue
		}
		c.mu.Lock()
		k := min(n, c.skip)
		c.skip -= k
		c.mu.Unlock()
		if n = copy(b, b[k:n]); n > 0 || err != nil {
			return n, err
		}
	}
}

// fill writes until there is no room, and stays that way, and returns how much.
func fill(t *testing.T, conn *net.TCPConn) (total int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	must(t, err)
	junk := make([]byte, 64<<10)
	full := 0
	wait.Until(t, "the socket is full", func() bool {
		for n := 1; n > 0; total += n {
			err := raw.Write(func(fd uintptr) bool { n, err = tryWrite(fd, junk); return true })
			must(t, err)
			if n > 0 {
				full = 0
			}
		}
		full++
		return full == 100
	})
	return total
}

// TestDirect_SocketFull_WriterTakesOver: a caller that finds no room in the socket does
// not wait for it, so that its context still counts, and what it had to write is
// written when there is room.
func TestDirect_SocketFull_WriterTakesOver(t *testing.T) {
	s := newFakeServer(t)
	defer s.stop()
	var server *stuckConn
	var socket *net.TCPConn
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs, err := socketPair(ctx)
		if err != nil {
			return nil, err
		}
		server, socket = &stuckConn{Conn: ours}, theirs
		s.do(func() { s.acceptLocked(server) })
		return theirs, nil
	}
	c := dialFake(t, s, WithDialer(dial), WithSessionTimeout(patience))
	defer c.Close()
	_, _, err := c.Get(t.Context(), "/")
	must(t, err)
	server.mu.Lock()
	server.stuck = make(chan struct{})
	server.mu.Unlock()
	total := fill(t, socket)

	ctx, cancel := context.WithCancel(t.Context())
	set := result(func() error { _, err := c.Set(ctx, "/", []byte("x"), AnyVersion); return err })
	wait.Until(t, "the request has been taken", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.link.writing
	})
	cancel()
	wantErr(t, <-set, ErrOutcomeUnknown, context.Canceled)
	c.mu.Lock()
	writing := c.link.writing
	c.mu.Unlock()
	if !writing {
		t.Error("the request was written: the test is wrong")
	}

	server.mu.Lock()
	server.skip = total - server.dropped
	close(server.stuck)
	server.stuck = nil
	server.mu.Unlock()
	data, _, err := c.Get(t.Context(), "/")
	must(t, err)
	if string(data) != "x" || len(get(s, &s.connects)) != 1 {
		t.Errorf("data %q over %d connections, want x over 1", data, len(s.connects))
	}
}
