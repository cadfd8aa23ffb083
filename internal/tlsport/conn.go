package tlsport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/rawconn"
)

// recordHandshake is the first byte of TLS. No frame of ZooKeeper's begins with it, and no text.
const recordHandshake = 0x16

// Conn is an accepted connection. Deadlines are those of the connection below.
type Conn struct {
	net.Conn // below TLS
	o        *Options

	mu      sync.Mutex // held during the beginning; protects the fields below until then
	err     error
	secure  atomic.Pointer[tls.Conn] // nil: plain, or not known yet
	begun   atomic.Bool
	head    []byte     // plain bytes that were read to see what is spoken
	below   *gathering // what TLS writes to
	frames  frames     // of WriteFrames
	batches bool       // of tlsfiles.Batches, the one protocol to agree on: a record may have several frames
}

func newConn(c net.Conn, o *Options) *Conn { return &Conn{Conn: c, o: o} }

// Read implements net.Conn. The first one begins TLS.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	if s := c.secure.Load(); s != nil {
		return s.Read(b)
	}
	if len(c.head) > 0 { // only the reader is here
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	if s := c.secure.Load(); s != nil {
		return s.Write(b)
	}
	return c.Conn.Write(b)
}

// WriteNow writes what is possible without waiting; with TLS that is nothing (rawconn.WriteNow).
func (c *Conn) WriteNow(b []byte) (int, error) {
	if !c.begun.Load() || c.secure.Load() != nil {
		return 0, nil
	}
	return rawconn.WriteNow(c.Conn, b)
}

// CloseWrite ends what is sent, TLS first.
func (c *Conn) CloseWrite() error {
	var err error
	if s := c.secure.Load(); s != nil {
		err = s.CloseWrite()
	}
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.Join(err, errors.ErrUnsupported)
	}
	return errors.Join(err, half.CloseWrite())
}

// SyscallConn implements syscall.Conn.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	below, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return below.SyscallConn()
}

// TLS returns the state of TLS; ok is false for a connection without it, and before the first Read.
func (c *Conn) TLS() (s tls.ConnectionState, ok bool) {
	secure := c.secure.Load()
	if secure == nil {
		return s, false
	}
	return secure.ConnectionState(), true
}

// begin finds out what is spoken, once.
func (c *Conn) begin() error {
	if c.begun.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.begun.Load() {
		return c.err
	}
	first := make([]byte, headBytes)
	n, err := c.Conn.Read(first)
	switch {
	case n == 0:
		return err // a deadline may be extended
	case first[0] == recordHandshake:
		err = c.handshake(first[:n])
	case c.o.PlainToo:
		c.head, err = first[:n], nil
	default:
		err = &PlainError{answer(c.Conn, first[:n])}
	}
	if c.err = err; err != nil {
		if c.o.Failed != nil {
			c.o.Failed(c.RemoteAddr(), err)
		}
		return err
	}
	c.begun.Store(true)
	return nil
}

// handshake does the server's part.
func (c *Conn) handshake(first []byte) error {
	h := c.o.Handshakes
	if err := h.begin(); err != nil {
		return &HandshakeError{err}
	}
	// The reader's own deadline stays, should it be earlier.
	late := time.AfterFunc(h.time, func() { _ = c.Conn.Close() })
	c.below = &gathering{Conn: c.Conn}
	below := &slotConn{Conn: c.below, slots: h.slots, first: first, held: true}
	h.slots <- struct{}{}
	s := tls.Server(below, c.o.Config)
	err := s.Handshake()
	below.release()
	below.slots = nil
	if !late.Stop() && err == nil {
		err = net.ErrClosed
	}
	if h.end(err); err != nil {
		return &HandshakeError{err}
	}
	c.batches = s.ConnectionState().NegotiatedProtocol != ""
	c.secure.Store(s)
	return nil
}

// HandshakeError reports that TLS could not be begun with a client.
type HandshakeError struct{ Err error }

func (e *HandshakeError) Error() string { return fmt.Sprintf("TLS handshake: %v", e.Err) }
func (e *HandshakeError) Unwrap() error { return e.Err }

// slotConn has a slot while the handshake computes. Afterwards it is just the connection.
type slotConn struct {
	net.Conn
	slots chan struct{} // nil: the handshake is over
	first []byte        // was read already
	held  bool
}

func (c *slotConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	if c.slots == nil {
		return c.Conn.Read(b)
	}
	c.release()
	n, err := c.Conn.Read(b)
	c.slots <- struct{}{}
	c.held = true
	return n, err
}

func (c *slotConn) release() {
	if c.held {
		c.held = false
		<-c.slots
	}
}
