// Package rawconn reads and writes TCP connections with raw system calls, which Go's scheduler does not
// notice. It opens no connections and knows no protocol. The setting net.rawSystemCalls turns it off.
//
// Package net reports every read and write to the scheduler, because it cannot know that a call on a
// socket in non-blocking mode returns at once. In a process that was idle, such a report wakes the
// runtime's monitor thread, which then reads the state of every processor each 20 us until the process is
// idle again. In a server that answers small requests on many connections, that thread took a fifth of
// the CPU (docs/adr/0011).
//
// A raw call keeps its processor while the kernel copies. That is short for small messages: 5 to 20 us.
// It is longer for large ones, and other goroutines of that processor, the collector included, wait
// for it. A socket that is not ready returns EAGAIN, and then package net's poller waits.
//
// In a build for the race detector the calls are those of package syscall, which report to the detector
// which memory the kernel reads and writes. It is blind to that in a raw call.
//
// # Concurrency
//
// A connection may be used by several goroutines, as any net.Conn. Each has two locks, one per
// direction, held during a Read or a Write. Each Poller has one goroutine, from its first connection to Close.
package rawconn

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// New returns a connection that behaves as c and owns it, with cheaper reads and writes. It returns c
// itself unless c is a *net.TCPConn on a system that has such calls.
func New(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok || !available {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c // it is closed, and its next use will return that
	}
	d := &conn{TCPConn: tcp, raw: raw}
	d.in.call, d.out.call, d.out.once = d.in.read, d.out.write, d.out.writeOnce
	return d
}

// WriteNow writes as much of b to c as is possible without waiting, and so without a deadline: a deadline
// that moves at each write keeps a timer, which wakes an idle process. It is for connections that New
// made; on others it writes nothing.
func WriteNow(c net.Conn, b []byte) (n int, err error) {
	if d, ok := c.(*conn); ok {
		return d.writeNow(b)
	}
	if d, ok := c.(interface{ WriteNow([]byte) (int, error) }); ok { // has one of ours below
		return d.WriteNow(b)
	}
	return 0, nil
}

// Listener returns l with every connection that it accepts made by New.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return New(c), nil
}

// conn is a connection whose methods Read and Write are ours. ReadFrom and WriteTo, which net.TCPConn has
// for files, are not used here; they stay correct.
type conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer

	closed atomic.Bool
	poller atomic.Pointer[Poller] // nil: it has never waited there
	fd     int                    // protected by poller.mu
	waiter Waiter                 // protected by poller.mu; nil: it does not wait
}

// Waiter waits for a connection at a Poller. Its methods must not block.
type Waiter interface {
	// Ready is called by the Poller's goroutine when there is something to read, or was.
	Ready()
	// Wake is called by Wake and Close, perhaps with locks held.
	Wake()
}

// Wait has one of w's methods called, once, as soon as c has bytes to read or has ended, and by Wake and Close. It
// reports false, and calls nothing, if c cannot wait at the Poller: it was not made by New, or is closed. Until the
// call, which may be before Wait returns, the caller must not read from c.
func (p *Poller) Wait(c net.Conn, w Waiter) (waits bool) {
	if d, ok := c.(*conn); ok {
		_ = d.raw.Control(func(fd uintptr) { waits = p.arm(d, int(fd), w) }) // fails if c is closed
	}
	return waits
}

// CanWait reports whether c may wait at a Poller: New made it.
func CanWait(c net.Conn) bool {
	_, ok := c.(*conn)
	return ok
}

// ReadNow reads what c has received into b, without waiting. It returns 0 for whatever else a Read would return, and
// for connections that New has not made.
func ReadNow(c net.Conn, b []byte) (n int) {
	if d, ok := c.(*conn); ok {
		_ = d.raw.Control(func(fd uintptr) { n, _ = read(fd, b) })
	}
	return n
}

// Wake wakes what waits for c at a Poller, if anything does.
func Wake(c net.Conn) {
	if d, ok := c.(*conn); ok {
		d.wake()
	}
}

func (c *conn) wake() {
	if p := c.poller.Load(); p != nil {
		p.wake(c)
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closed.Store(true)
	c.wake()
	return c.TCPConn.Close()
}

// transfer is one direction of a connection.
type transfer struct {
	call func(fd uintptr) (done bool) // is read or write, made once
	once func(fd uintptr) (done bool) // is writeOnce, made once

	mu    sync.Mutex    // held during a Read or Write; protects the fields below
	b     []byte        // in: room for received bytes; out: bytes still to be sent
	n     int           // in: received bytes
	errno syscall.Errno // of the last system call
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	t := &c.in
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = b
	err := c.raw.Read(t.call)
	t.b = nil
	switch {
	case err != nil:
		return 0, err
	case t.errno != 0:
		return 0, c.failure("read", t.errno)
	case t.n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return t.n, nil
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) { return c.write(b, c.out.call) }

func (c *conn) writeNow(b []byte) (int, error) { return c.write(b, c.out.once) }

func (c *conn) write(b []byte, call func(fd uintptr) (done bool)) (int, error) {
	t := &c.out
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b, t.errno = b, 0
	err := c.raw.Write(call)
	n := len(b) - len(t.b)
	t.b = nil
	if err == nil && t.errno != 0 {
		err = c.failure("write", t.errno)
	}
	return n, err
}

func (c *conn) failure(op string, errno syscall.Errno) error {
	return &net.OpError{
		Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, errno),
	}
}

func (t *transfer) read(fd uintptr) (done bool) {
	t.n, t.errno = read(fd, t.b)
	return t.errno != syscall.EAGAIN
}

// writeOnce is write that does not wait for room.
func (t *transfer) writeOnce(fd uintptr) (done bool) {
	if !t.write(fd) {
		t.errno = 0
	}
	return true
}

func (t *transfer) write(fd uintptr) (done bool) {
	for n := 0; len(t.b) > 0; t.b = t.b[n:] {
		if n, t.errno = write(fd, t.b); t.errno != 0 {
			return t.errno != syscall.EAGAIN
		}
	}
	return true
}
