package client

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/wire"
)

// keepOut is the largest output buffer that is reused, so that one large write
// does not hold memory forever.
const keepOut = 1 << 20

// errLinkGone ends a goroutine of a link that the client has already given up.
var errLinkGone = errors.New("connection was given up")

// errServerLeaves ends a connection whose server is about to stop (wire.GoAway).
var errServerLeaves = errors.New("the server is about to stop")

// link is one connection to a server on which the session has been established.
// It has a goroutine that reads and one that writes; both end when the
// connection is closed.
type link struct {
	// Set at construction.
	conn    net.Conn
	target  target
	frames  *wire.FrameReader
	session *session
	timeout time.Duration // of the session
	since   time.Duration // when it was established, on Client.clock
	direct  *direct       // by which callers write; nil if they must not

	// Own synchronisation.
	wake chan struct{} // capacity 1: there is something in out
	rest chan []byte   // capacity 1: the bytes that a caller could not write, for the writer
	gone chan struct{} // closed by fail
	once sync.Once
	err  error // why; written before gone is closed

	// Owned by the goroutine that has set writing.
	writeFrom time.Duration // from when on the deadline of writes counts, on Client.clock

	// Client.mu protects the fields below.
	out      []byte        // frames that no goroutine has taken to write
	outSince time.Duration // not later than the submission of any of them
	spare    []byte        // the next out; nil while its last content is being written
	writing  bool          // a goroutine has taken frames, and will look at out again
	taken    uint64        // number, in Client.queue, after the last one taken
	pings    []time.Duration
}

// fail closes the connection. The first cause stays.
func (l *link) fail(cause error) {
	l.once.Do(func() {
		l.err = cause
		close(l.gone)
		l.conn.Close()
	})
}

func (l *link) wakeWriter() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// silence is how long the server may send nothing before the client drops the
// connection: two thirds of the session timeout, which leaves a third to find
// another server (as in ZooKeeper's ClientCnxn).
func (l *link) silence() time.Duration { return l.timeout * 2 / 3 }

// slack is how much earlier than that a read or write may fail, which saves moving the
// deadline for each.
func (l *link) slack() time.Duration { return l.silence() / 32 }

// write is the writer's goroutine: it hands the content of l.out to the network in
// one call, and sends a ping when it has sent nothing for a third of the session
// timeout. A request that has nothing to share a call with is written by its caller
// (submit), which saves two switches of goroutines; the writer then writes the part
// for which the socket had no room.
func (c *Client) write(l *link) error {
	idle := time.NewTimer(l.timeout / 3)
	defer idle.Stop()
	for {
		var buf []byte
		var err error
		ping := false
		select {
		case <-l.wake:
			buf, err = c.takeOut(l, false)
		case buf = <-l.rest:
		case <-idle.C:
			ping = true
			buf, err = c.takeOut(l, true)
		case <-l.gone:
			return l.err
		}
		for ; err == nil && len(buf) > 0; buf, err = c.takeMore(l, buf) {
			if err = c.send(l, buf); err != nil {
				return err
			}
			idle.Reset(l.timeout / 3)
		}
		if err != nil {
			return err
		}
		if ping {
			idle.Reset(l.timeout / 3) // also if a caller was just writing
		}
	}
}

// send writes frames to the network, in one call.
func (c *Client) send(l *link, buf []byte) error {
	if err := l.setWriteDeadline(c.clock()); err != nil {
		return err
	}
	_, err := l.conn.Write(buf)
	return err
}

// setWriteDeadline gives a write that begins now its time.
func (l *link) setWriteDeadline(now time.Duration) error {
	if l.writeFrom > 0 && now-l.writeFrom <= l.slack() {
		return nil
	}
	l.writeFrom = now
	return l.conn.SetWriteDeadline(time.Now().Add(l.silence()))
}

// takeOut takes the gathered frames, or none if another goroutine is writing.
func (c *Client) takeOut(l *link, ping bool) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return nil, errLinkGone
	}
	if l.writing {
		return nil, nil
	}
	if ping && len(l.out) == 0 {
		l.pings = append(l.pings, c.clock())
		l.out = wire.AppendRequest(l.out,
			wire.RequestHeader{Xid: wire.XidPing, Type: wire.OpPing}, nil)
	}
	return c.takeLocked(l), nil
}

// takeMore returns a written buffer and takes the frames that gathered meanwhile.
func (c *Client) takeMore(l *link, written []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return nil, errLinkGone
	}
	l.writtenLocked(written)
	return c.takeLocked(l), nil
}

// takeLocked takes the gathered frames for a goroutine that writes them and then
// calls writtenLocked. From here on they count as sent, because no one can know
// whether a failed Write reached the server.
func (c *Client) takeLocked(l *link) []byte {
	if len(l.out) == 0 {
		return nil
	}
	buf := l.out
	l.out, l.spare, l.writing = l.spare, nil, true
	l.taken = c.queue.End()
	return buf
}

func (l *link) writtenLocked(buf []byte) {
	l.writing = false
	if cap(buf) <= keepOut {
		l.spare = buf[:0]
	}
}

// detachLocked gives up a connection: operations that were sent on it fail,
// others wait for the next one. It may be called more than once.
func (c *Client) detachLocked(l *link, cause error) {
	l.fail(cause)
	if c.link != l {
		return
	}
	c.link = nil
	l.out = nil
	lost := &lostLink{server: l.target.address, cause: cause}
	for c.queue.Len() > 0 && c.queue.First() < l.taken {
		op := c.queue.Pop()
		c.finishLocked(op, op.base().lost(lost))
	}
	// Internal operations belong to their connection: the next one makes its
	// own.
	for n := c.queue.Len(); n > 0; n-- {
		if op := c.queue.Pop(); op.base().internal {
			c.finishLocked(op, lost)
		} else {
			c.queue.Push(op)
		}
	}
	if !c.session.dead && !c.closing {
		c.setStateLocked(StateChange{
			State: StateSuspended, Err: lost, Deadline: c.deadlineLocked(),
		})
	}
}

// directBytes bounds what a caller writes itself, far below the free buffer of an
// idle socket.
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

// directTo returns nil if a write to conn may block: with TLS, for connections of
// other types from the application's dialer, and on systems without such writes.
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
	return true // even if nothing was written: the caller does not wait
}

// try returns how many bytes of buf the socket accepted.
func (d *direct) try(buf []byte) (int, error) {
	d.buf, d.n, d.err = buf, 0, nil
	err := d.raw.Write(d.write)
	d.buf = nil
	if err == nil {
		err = d.err
	}
	return d.n, err
}

// sendDirect writes the frames that a caller has taken. It leaves to the writer the
// bytes for which the socket has no room, and the frames that gathered meanwhile.
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
