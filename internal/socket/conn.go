package socket

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// Direct returns a connection that behaves as c and owns it, with cheaper reads and writes. Anything but
// a *net.TCPConn, on a system that has such calls, is returned as it is.
func Direct(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok || !available {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c // it is closed, and whoever uses it will find out
	}
	d := &conn{TCPConn: tcp, raw: raw}
	d.in.call, d.out.call = d.in.read, d.out.write
	return d
}

// Listener returns l with every connection that it accepts made Direct.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Direct(c), nil
}

// conn is a connection whose methods Read and Write are ours. Neither ReadFrom nor WriteTo, which
// net.TCPConn has for files, is of use to anybody here; they stay correct.
type conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
}

// transfer is one direction of a connection.
type transfer struct {
	mu   sync.Mutex // held during a Read or Write; protects the fields below
	call func(fd uintptr) (done bool)
	b    []byte // in: room for what comes; out: what is still to be sent
	n    int    // in: what has come
	err  error
}

// Read reads as net.Conn says.
func (c *conn) Read(b []byte) (int, error) {
	t := &c.in
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b, t.n, t.err = b, 0, nil
	err := c.raw.Read(t.call)
	t.b = nil
	switch {
	case err != nil:
		return 0, err
	case t.err != nil:
		return 0, c.failure("read", t.err)
	case t.n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return t.n, nil
}

// Write writes all of b or returns an error, as net.Conn says.
func (c *conn) Write(b []byte) (int, error) {
	t := &c.out
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b, t.err = b, nil
	err := c.raw.Write(t.call)
	n := len(b) - len(t.b)
	t.b = nil
	if err == nil && t.err != nil {
		err = c.failure("write", t.err)
	}
	return n, err
}

func (c *conn) failure(op string, err error) error {
	return &net.OpError{
		Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, err),
	}
}

func (t *transfer) read(fd uintptr) (done bool) {
	n, errno := read(fd, t.b)
	if errno == syscall.EAGAIN {
		return false
	}
	if errno != 0 {
		t.err = errno
		return true
	}
	t.n = n
	return true
}

func (t *transfer) write(fd uintptr) (done bool) {
	for len(t.b) > 0 {
		n, errno := write(fd, t.b)
		if errno == syscall.EAGAIN {
			return false
		}
		if errno != 0 {
			t.err = errno
			return true
		}
		t.b = t.b[n:]
	}
	return true
}
