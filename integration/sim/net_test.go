package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// windowBytes is what a connection holds that its reader has not taken: a socket's buffers.
	windowBytes = 256 << 10
	// dialLimit is when a kernel gives up on a host that does not answer.
	dialLimit = 20 * time.Second
)

// network connects the servers, which are counted from 0. The mutex orders everything: it is held
// for moments only, and those who wait for bytes wait on a connection's condition.
type network struct {
	mu      sync.Mutex // protects the fields below, and every conn
	rng     *rand.Rand
	hosts   []host
	blocked map[[2]int]int           // if not 0, nothing gets from the first to the second
	delay   map[[2]int]time.Duration // additional delay of one way, at most
	conns   map[*conn]struct{}
	counts  map[string]int // faults that happened to connections
}

// host is a server as the network sees it.
type host struct {
	listener *listener
	life     int  // of the process that listens and dials
	silent   bool // the host has vanished: it sends nothing, not even that there is no listener
	frozen   bool // the process stands still; its kernel accepts
}

func newNetwork(n int, rng *rand.Rand) *network {
	return &network{
		rng: rng, hosts: make([]host, n), blocked: map[[2]int]int{},
		delay: map[[2]int]time.Duration{}, conns: map[*conn]struct{}{}, counts: map[string]int{},
	}
}

func addrOf(i int) string { return fmt.Sprintf("server-%d:2888", i) }

type simAddr string

func (simAddr) Network() string  { return "sim" }
func (a simAddr) String() string { return string(a) }

// listener is a server's peer port in one life of its process.
type listener struct {
	n    *network
	i    int
	in   chan net.Conn
	done chan struct{}
	once sync.Once
}

// listen begins a new life of a server on the network. What is left of an older one is reset: the
// kernel knows nothing of it.
func (n *network) listen(i int) *listener {
	l := &listener{n: n, i: i, in: make(chan net.Conn, 64), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if c.from == i || c.to == i {
			c.resetLocked()
		}
	}
	n.hosts[i] = host{listener: l, life: n.hosts[i].life + 1}
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.in:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Addr() net.Addr { return simAddr(addrOf(l.i)) }

func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		if l.n.hosts[l.i].listener == l {
			l.n.hosts[l.i].listener = nil
		}
		l.n.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.in:
				c.Close()
			default:
				return
			}
		}
	})
	return nil
}

// latencyLocked is how long bytes take on their way this time.
func (n *network) latencyLocked(from, to int) time.Duration {
	d := 50*time.Microsecond + time.Duration(n.rng.Int64N(int64(500*time.Microsecond)))
	if extra := n.delay[[2]int{from, to}]; extra > 0 {
		d += time.Duration(n.rng.Int64N(int64(extra)))
	}
	return d
}

// dialer is the dial function of a server in its present life.
func (n *network) dialer(from int) func(context.Context, string) (net.Conn, error) {
	n.mu.Lock()
	life := n.hosts[from].life
	n.mu.Unlock()
	return func(ctx context.Context, addr string) (net.Conn, error) {
		to := -1
		for i := range n.hosts {
			if addrOf(i) == addr {
				to = i
			}
		}
		if to < 0 {
			return nil, fmt.Errorf("no such host: %s", addr)
		}
		n.mu.Lock()
		trip := n.latencyLocked(from, to) + n.latencyLocked(to, from)
		n.mu.Unlock()
		if err := wait(ctx, trip); err != nil {
			return nil, err
		}
		c, err := n.connect(from, to, life)
		if errors.Is(err, errNoAnswer) {
			if werr := wait(ctx, dialLimit); werr != nil {
				err = werr
			}
			return nil, &net.OpError{Op: "dial", Net: "sim", Err: err}
		}
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errNoAnswer = errors.New("no answer")

func (n *network) connect(from, to, life int) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &n.hosts[to]
	switch {
	case n.hosts[from].life != life || n.hosts[from].silent:
		return nil, net.ErrClosed
	case h.silent, n.blocked[[2]int{from, to}] > 0, n.blocked[[2]int{to, from}] > 0:
		return nil, errNoAnswer
	case h.listener == nil:
		return nil, &net.OpError{Op: "dial", Net: "sim", Err: syscall.ECONNREFUSED}
	}
	here, there := newConn(n, from, to), newConn(n, to, from)
	here.peer, there.peer = there, here
	select {
	case h.listener.in <- there:
	default:
		return nil, &net.OpError{Op: "dial", Net: "sim", Err: syscall.ECONNREFUSED}
	}
	n.conns[here], n.conns[there] = struct{}{}, struct{}{}
	return here, nil
}

// change alters what the network lets through; those that wait look again.
func (n *network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	for c := range n.conns {
		c.cond.Broadcast()
	}
}

// kill is what the network sees of a process that is killed, or of a host that vanishes silently.
func (n *network) kill(i int, silent bool) {
	n.change(func() {
		h := &n.hosts[i]
		h.life++
		h.silent, h.frozen = silent, false
		for c := range n.conns {
			if c.from != i {
				continue
			}
			c.mute = true // no one receives what the dying life still sends
			if !silent {
				c.peer.pushLocked(segment{end: syscall.ECONNRESET})
			}
			c.closed = true
		}
	})
}

// reset breaks connections, as a loss of many packets or a firewall does.
func (n *network) reset(match func(from, to int) bool) {
	n.change(func() {
		for c := range n.conns {
			if match(c.from, c.to) {
				n.counts["connection reset"]++
				c.resetLocked()
				c.peer.resetLocked()
			}
		}
	})
}

// stall holds up some connections for a while, as a loss and its retransmission do. Others between
// the same servers go on: their bytes overtake.
func (n *network) stall(match func(from, to int) bool, d time.Duration) {
	n.change(func() {
		for c := range n.conns {
			if match(c.from, c.to) && n.rng.IntN(2) == 0 {
				n.counts["connection stalled"]++
				c.stalled = time.Now().Add(d)
				time.AfterFunc(d, func() { n.change(func() {}) })
			}
		}
	})
}

// segment is what one Write sent, or the end.
type segment struct {
	at   time.Time
	data []byte
	end  error
}

// conn is one end of a connection: what it reads was sent by peer. n.mu protects it.
type conn struct {
	n        *network
	from, to int
	peer     *conn
	cond     *sync.Cond // on n.mu

	in       []segment
	size     int
	last     time.Time // when the newest segment comes: the next cannot come earlier
	stalled  time.Time // nothing is read before
	closed   bool
	mute     bool
	broken   error // the connection was reset
	readEnd  time.Time
	writeEnd time.Time
}

func newConn(n *network, from, to int) *conn {
	c := &conn{n: n, from: from, to: to}
	c.cond = sync.NewCond(&n.mu)
	return c
}

// heldLocked reports whether what the peer has sent stays on its way.
func (c *conn) heldLocked() bool {
	n := c.n
	return n.blocked[[2]int{c.to, c.from}] > 0 || n.hosts[c.from].frozen || n.hosts[c.to].frozen ||
		time.Now().Before(c.stalled)
}

// pushLocked sends a segment towards c.
func (c *conn) pushLocked(s segment) {
	s.at = time.Now().Add(c.n.latencyLocked(c.to, c.from))
	if s.at.Before(c.last) {
		s.at = c.last
	}
	c.last = s.at
	c.in = append(c.in, s)
	c.size += len(s.data)
	time.AfterFunc(time.Until(s.at), c.wake)
}

func (c *conn) wake() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.cond.Broadcast()
}

func (c *conn) resetLocked() {
	c.broken = syscall.ECONNRESET
	c.in, c.size = nil, 0
	delete(c.n.conns, c)
	c.cond.Broadcast()
}

// Read waits for bytes that have arrived.
func (c *conn) Read(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.broken != nil:
			return 0, c.broken
		case past(c.readEnd):
			return 0, os.ErrDeadlineExceeded
		case len(c.in) > 0 && !c.heldLocked() && !time.Now().Before(c.in[0].at):
			s := &c.in[0]
			if s.end != nil {
				return 0, s.end
			}
			k := copy(b, s.data)
			s.data = s.data[k:]
			c.size -= k
			if len(s.data) == 0 {
				c.in = c.in[1:]
			}
			c.peer.cond.Broadcast()
			return k, nil
		}
		c.cond.Wait()
	}
}

// Write sends bytes, and waits while the window is full.
func (c *conn) Write(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.broken != nil:
			return 0, c.broken
		case past(c.writeEnd):
			return 0, os.ErrDeadlineExceeded
		case c.mute:
			return len(b), nil
		case c.peer.closed && !c.peer.heldLocked() && !c.n.hosts[c.to].silent:
			return 0, syscall.EPIPE
		case c.peer.size < windowBytes:
			c.peer.pushLocked(segment{data: append([]byte(nil), b...)})
			return len(b), nil
		}
		c.cond.Wait()
	}
}

func past(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// Close ends the connection; the other side learns of it behind what was sent.
func (c *conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	delete(c.n.conns, c)
	if !c.mute && c.broken == nil {
		c.peer.pushLocked(segment{end: io.EOF})
	}
	c.cond.Broadcast()
	c.peer.cond.Broadcast()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return simAddr(addrOf(c.from)) }
func (c *conn) RemoteAddr() net.Addr { return simAddr(addrOf(c.to)) }

func (c *conn) SetDeadline(t time.Time) error {
	c.setEnd(&c.readEnd, t)
	c.setEnd(&c.writeEnd, t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.setEnd(&c.readEnd, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.setEnd(&c.writeEnd, t)
	return nil
}

func (c *conn) setEnd(end *time.Time, t time.Time) {
	c.n.mu.Lock()
	*end = t
	c.n.mu.Unlock()
	if d := time.Until(t); !t.IsZero() && d > 0 {
		time.AfterFunc(d, c.wake)
		return
	}
	c.wake()
}
