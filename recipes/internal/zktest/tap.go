package zktest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Op is an operation of the protocol, by its number.
type Op int32

// The operations that tests cut or count.
const (
	OpDelete   Op = 2
	OpGetData  Op = 4
	OpSetData  Op = 5
	OpSync     Op = 9
	OpChildren Op = 12
	OpMulti    Op = 14
	OpCreate   Op = 15
	OpContain  Op = 19 // createContainer
)

// errCut is what reads from a connection that was cut.
var errCut = errors.New("zktest: the connection was cut")

// Tap sits between a client and its servers: it knows the frames that pass, and
// can break connections at any of them. It is the client's dialer.
type Tap struct {
	mu      sync.Mutex // protects the fields below
	conns   map[*tapped]bool
	blocked bool
	drop    map[Op]int // replies still to be lost
	close   bool       // block after that
	before  func(Op)   // called with every request, before it is sent
	events  int
	sent    map[Op]int
	lost    int
}

// NewTap returns a tap that lets everything pass.
func NewTap() *Tap {
	return &Tap{conns: map[*tapped]bool{}, drop: map[Op]int{}, sent: map[Op]int{}}
}

// Dial is a client.DialFunc.
func (t *Tap) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	t.mu.Lock()
	blocked := t.blocked
	t.mu.Unlock()
	if blocked {
		return nil, fmt.Errorf("dialling %s: %w", address, errCut)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &tapped{Conn: conn, tap: t, cut: map[int32]bool{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.blocked {
		conn.Close()
		return nil, fmt.Errorf("dialling %s: %w", address, errCut)
	}
	t.conns[c] = true
	return c, nil
}

// Cut breaks the connections that there are.
func (t *Tap) Cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		c.Conn.Close()
	}
}

// Block breaks the connections, and lets no new one through until Unblock.
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

// LoseReply breaks the connection when the server has answered the next request
// of that kind, and loses the answer.
func (t *Tap) LoseReply(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop[op]++
}

// LoseReplyAndBlock is LoseReply and then, at the same moment, Block.
func (t *Tap) LoseReplyAndBlock(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop[op]++
	t.close = true
}

// Before has f called with every request before it is sent; nil ends that. While
// f runs, the client sends nothing.
func (t *Tap) Before(f func(Op)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = f
}

// Events is how many events of watches have come through.
func (t *Tap) Events() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events
}

// Sent is how many requests of a kind have gone through.
func (t *Tap) Sent(op Op) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent[op]
}

// Lost is how many replies have been lost because of LoseReply.
func (t *Tap) Lost() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

// tapped is one connection. The client reads on one goroutine and writes on
// another.
type tapped struct {
	net.Conn
	tap *Tap

	begun   bool   // the connect request has been written
	pending []byte // written, not yet a whole frame
	greeted bool   // the connect reply has been read
	in      []byte // read, not yet asked for

	cut map[int32]bool // xids of replies to lose; protected by tap.mu
}

// Write sends whole frames one after the other.
func (c *tapped) Write(b []byte) (int, error) {
	c.pending = append(c.pending, b...)
	for len(c.pending) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(c.pending))
		if len(c.pending) < n {
			break
		}
		if c.begun && n >= 12 {
			xid := int32(binary.BigEndian.Uint32(c.pending[4:]))
			c.request(xid, Op(int32(binary.BigEndian.Uint32(c.pending[8:]))))
		}
		c.begun = true
		if _, err := c.Conn.Write(c.pending[:n]); err != nil {
			return 0, err
		}
		c.pending = c.pending[n:]
	}
	return len(b), nil
}

func (c *tapped) request(xid int32, op Op) {
	t := c.tap
	t.mu.Lock()
	t.sent[op]++
	if t.drop[op] > 0 {
		t.drop[op]--
		c.cut[xid] = true
	}
	before := t.before
	t.mu.Unlock()
	if before != nil {
		before(op)
	}
}

// Read returns bytes of whole frames.
func (c *tapped) Read(b []byte) (int, error) {
	if len(c.in) == 0 {
		frame, err := c.frame()
		if err != nil {
			return 0, err
		}
		c.in = frame
	}
	n := copy(b, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *tapped) frame() ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(c.Conn, frame); err != nil {
		return nil, err
	}
	frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
	if _, err := io.ReadFull(c.Conn, frame[4:]); err != nil {
		return nil, err
	}
	if !c.greeted || len(frame) < 8 {
		c.greeted = true
		return frame, nil
	}
	xid := int32(binary.BigEndian.Uint32(frame[4:]))
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if xid == -1 {
		c.tap.events++
	}
	if c.cut[xid] {
		c.tap.lost++
		c.tap.blocked = c.tap.blocked || c.tap.close
		c.tap.close = false
		c.Conn.Close()
		return nil, errCut
	}
	return frame, nil
}

// Close closes the connection.
func (c *tapped) Close() error {
	c.tap.mu.Lock()
	delete(c.tap.conns, c)
	c.tap.mu.Unlock()
	return c.Conn.Close()
}
