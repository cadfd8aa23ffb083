// Package tlsport accepts connections that speak TLS, or TLS and plain bytes on one port. The first byte of a
// connection shows which. Its first Read does the handshake, on the reader's goroutine and under the reader's
// deadlines. So Accept never waits for a client, and the limits of each port (connections of one address,
// descriptors, silent connections) count a client before it has cost a handshake.
//
// Slots (Handshakes) bound the computation of handshakes: thousands of clients that connect at once must
// not take the processors from the rest of the server. A handshake that waits for its client has no slot.
//
// It starts no goroutine, reads no file (internal/tlsfiles does) and writes no log.
package tlsport

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/internal/rawconn"
)

// Options configure a Listener.
type Options struct {
	Config     *tls.Config
	PlainToo   bool // a client may also speak without TLS
	Handshakes *Handshakes
	// Failed, if not nil, is called for each failed handshake. It must not block.
	Failed func(from net.Addr, err error)
}

// New returns l with connections that speak TLS; each is a *Conn.
func New(l net.Listener, o Options) net.Listener { return &listener{l, o} }

type listener struct {
	net.Listener
	o Options
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c, &l.o), nil
}

// recordHandshake is the first byte of TLS. No frame of ZooKeeper's begins with it, and no text.
const recordHandshake = 0x16

// Conn is an accepted connection: its user reads before it writes. Deadlines are those of the connection below.
type Conn struct {
	net.Conn // below TLS
	o        *Options

	mu      sync.Mutex // held during the beginning; protects the fields below until then
	err     error
	secure  atomic.Pointer[tls.Conn] // nil: plain, or not known yet
	begun   atomic.Bool
	head    []byte     // plain bytes that were read to find the protocol
	below   *gathering // TLS writes to it
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

// WriteNow writes as much as possible without waiting; with TLS that is nothing
// (rawconn.WriteNow).
func (c *Conn) WriteNow(b []byte) (int, error) {
	if !c.begun.Load() || c.secure.Load() != nil {
		return 0, nil
	}
	return rawconn.WriteNow(c.Conn, b)
}

// CloseWrite closes the sending side, TLS first.
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

// State returns the state of TLS on a connection of either side. ok is false for one without TLS, and for a Conn before
// its first Read.
func State(c net.Conn) (s tls.ConnectionState, ok bool) {
	secure, ok := c.(*tls.Conn)
	if port, accepted := c.(*Conn); accepted {
		secure = port.secure.Load()
		ok = secure != nil
	}
	if !ok {
		return s, false
	}
	return secure.ConnectionState(), true
}

// Certificate returns the certificate that the other side of a connection has shown; nil if there is none.
func Certificate(c net.Conn) *x509.Certificate {
	if s, _ := State(c); len(s.PeerCertificates) > 0 {
		return s.PeerCertificates[0]
	}
	return nil
}

// begin determines, once, whether the client speaks TLS, and does the handshake.
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

// WriteFrames writes b, a part of a stream of frames that begin with their length (4 bytes, big-endian). With TLS,
// no record carries the end of one frame and the beginning of the next: ZooKeeper's C client reads one reply each
// time that poll finds bytes at the socket, and bytes that OpenSSL holds already are not there. All frames still go
// out in one write. A client that has agreed on tlsfiles.Batches has no such need.
func (c *Conn) WriteFrames(b []byte) (int, error) {
	s := c.secure.Load()
	if s == nil || c.batches {
		return c.Write(b)
	}
	c.below.gather()
	for rest := b; len(rest) > 0; {
		n := c.frames.next(rest)
		if _, err := s.Write(rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	if err := c.below.flush(); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Handshakes bounds and counts the handshakes of a process.
type Handshakes struct {
	slots chan struct{}
	limit int64 // unfinished ones; 0: no limit
	time  time.Duration

	open                  atomic.Int64
	done, failed, refused atomic.Int64
}

// NewHandshakes returns the bounds for the ports of a process: how many may be unfinished (0: as many as
// there are connections), and how long one may take.
func NewHandshakes(limit int, within time.Duration) *Handshakes {
	return &Handshakes{slots: make(chan struct{}, runtime.NumCPU()), limit: int64(limit), time: within}
}

// Counts returns how many handshakes were done, have failed, and were refused because too many were unfinished.
func (h *Handshakes) Counts() (done, failed, refused int64) {
	return h.done.Load(), h.failed.Load(), h.refused.Load()
}

// begin takes a place for an unfinished handshake.
func (h *Handshakes) begin() error {
	if n := h.open.Add(1); h.limit > 0 && n > h.limit {
		h.open.Add(-1)
		h.refused.Add(1)
		return fmt.Errorf("%d handshakes are unfinished, which is the limit", h.limit)
	}
	return nil
}

func (h *Handshakes) end(err error) {
	h.open.Add(-1)
	if err != nil {
		h.failed.Add(1)
		return
	}
	h.done.Add(1)
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

// frames is where a stream of frames is.
type frames struct {
	header [4]byte
	known  int // bytes of header
	left   int // bytes of the frame after its header
}

// next returns how many bytes of b, at least one, belong to the frame at their beginning.
func (f *frames) next(b []byte) (n int) {
	if f.known < len(f.header) {
		n = copy(f.header[f.known:], b)
		if f.known += n; f.known == len(f.header) {
			f.left = int(binary.BigEndian.Uint32(f.header[:]))
		}
	}
	body := min(f.left, len(b)-n)
	if f.left -= body; f.left == 0 && f.known == len(f.header) {
		f.known = 0
	}
	return n + body
}

// gathering is a connection whose writes can be held until they are flushed as one.
type gathering struct {
	net.Conn
	mu      sync.Mutex // held while a write is under way: their order is that of TLS
	holding bool
	held    []byte
}

func (g *gathering) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holding {
		g.held = append(g.held, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

func (g *gathering) gather() {
	g.mu.Lock()
	g.holding = true
	g.mu.Unlock()
}

func (g *gathering) flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.Conn.Write(g.held)
	g.holding, g.held = false, nil
	return err
}
