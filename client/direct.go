package client

import (
	"net"
	"syscall"
	"time"
)

// directBytes bounds what a caller writes itself, far below the buffer that an idle
// socket has free.
const directBytes = 4 << 10

// direct writes to a socket without waiting until it has room.
type direct struct {
	raw   syscall.RawConn
	write func(fd uintptr) bool // is attempt, made once

	// Owned by the goroutine that writes.
	buf []byte
	n   int
	err error
}

// directTo returns nil if a write to conn may block: TLS, whatever a dialer of the
// application's own returns, and systems without such writes.
func directTo(conn net.Conn) *direct {
	var socket syscall.Conn
	switch conn := conn.(type) {
	case *net.TCPConn:
		socket = conn
	case *net.UnixConn:
		socket = conn
	}
	if socket == nil || !canTryWrite {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil // it is closed; its next use reports that
	}
	d := &direct{raw: raw}
	d.write = d.attempt
	return d
}

func (d *direct) attempt(fd uintptr) bool {
	d.n, d.err = tryWrite(fd, d.buf)
	return true // whatever has come of it: the caller does not wait
}

// try returns how many bytes of buf the socket has taken.
func (d *direct) try(buf []byte) (int, error) {
	d.buf, d.n, d.err = buf, 0, nil
	err := d.raw.Write(d.write)
	d.buf = nil
	if err == nil {
		err = d.err
	}
	return d.n, err
}

// sendDirect writes what a caller has taken, in a call that begins now. It leaves to
// the writer what the socket has no room for, and what has gathered meanwhile.
func (c *Client) sendDirect(l *link, buf []byte, now time.Duration) {
	err := l.setWriteDeadline(now)
	n := 0
	if err == nil {
		n, err = l.direct.try(buf)
	}
	if err != nil {
		l.fail(err)
		return
	}
	if n < len(buf) {
		l.rest <- buf[n:] // has room: only one can write
		return
	}
	c.mu.Lock()
	l.writtenLocked(buf)
	if len(l.out) > 0 {
		l.wakeWriter()
	}
	c.mu.Unlock()
}
