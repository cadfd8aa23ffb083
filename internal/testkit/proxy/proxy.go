// Package proxy sits between a ZooKeeper client and its servers in tests: it breaks connections
// at any request, loses replies, and counts requests and events. It reads frames, and knows no
// package of the product.
//
// It has no goroutine: the client's do the work. All methods of a Proxy are safe for
// concurrent use.
package proxy

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

// errCut is the error of reads from a connection that was cut.
var errCut = errors.New("proxy: the connection was cut")

// Proxy is a client's dialer that reads the frames that pass, and can break connections
// at any of them.
type Proxy struct {
	mu      sync.Mutex // protects the fields below
	conns   map[*proxied]bool
	blocked bool
	drop    map[Op]int // replies still to be lost
	close   bool       // block after that
	before  func(Op)   // called with every request, before it is sent
	events  int
	sent    map[Op]int
	lost    int
}

// New returns a proxy that lets everything pass.
func New() *Proxy {
	return &Proxy{conns: map[*proxied]bool{}, drop: map[Op]int{}, sent: map[Op]int{}}
}

// Dial is a client.DialFunc.
func (p *Proxy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	blocked := p.blocked
	p.mu.Unlock()
	if blocked {
		return nil, fmt.Errorf("dialling %s: %w", address, errCut)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &proxied{Conn: conn, proxy: p, cut: map[int32]bool{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blocked {
		conn.Close()
		return nil, fmt.Errorf("dialling %s: %w", address, errCut)
	}
	p.conns[c] = true
	return c, nil
}

// Cut breaks the connections that there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Conn.Close()
	}
}

// Block breaks the connections, and admits no new one until Unblock.
func (p *Proxy) Block() {
	p.mu.Lock()
	p.blocked = true
	p.mu.Unlock()
	p.Cut()
}

// Unblock ends a Block.
func (p *Proxy) Unblock() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = false
}

// LoseReply breaks the connection when the server has answered the next request
// of that kind, and loses the answer.
func (p *Proxy) LoseReply(op Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop[op]++
}

// LoseReplyAndBlock is LoseReply and then, at the same moment, Block.
func (p *Proxy) LoseReplyAndBlock(op Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop[op]++
	p.close = true
}

// Before has f called with every request before it is sent; nil ends that. While
// f runs, the client sends nothing.
func (p *Proxy) Before(f func(Op)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = f
}

// Events is how many watch events have passed.
func (p *Proxy) Events() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events
}

// Sent is how many requests of a kind have passed.
func (p *Proxy) Sent(op Op) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent[op]
}

// Lost is how many replies have been lost because of LoseReply.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// proxied is one connection. The client reads on one goroutine and writes on
// another.
type proxied struct {
	net.Conn
	proxy *Proxy

	begun   bool   // the connect request has been written
	pending []byte // written, not yet a whole frame
	greeted bool   // the connect reply has been read
	in      []byte // read, not yet asked for

	cut map[int32]bool // xids of replies to lose; protected by proxy.mu
}

// Write sends whole frames one after the other.
func (c *proxied) Write(b []byte) (int, error) {
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

func (c *proxied) request(xid int32, op Op) {
	p := c.proxy
	p.mu.Lock()
	p.sent[op]++
	if p.drop[op] > 0 {
		p.drop[op]--
		c.cut[xid] = true
	}
	before := p.before
	p.mu.Unlock()
	if before != nil {
		before(op)
	}
}

// Read returns bytes of whole frames.
func (c *proxied) Read(b []byte) (int, error) {
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

func (c *proxied) frame() ([]byte, error) {
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
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	if xid == -1 {
		c.proxy.events++
	}
	if c.cut[xid] {
		c.proxy.lost++
		c.proxy.blocked = c.proxy.blocked || c.proxy.close
		c.proxy.close = false
		c.Conn.Close()
		return nil, errCut
	}
	return frame, nil
}

// Close closes the connection.
func (c *proxied) Close() error {
	c.proxy.mu.Lock()
	delete(c.proxy.conns, c)
	c.proxy.mu.Unlock()
	return c.Conn.Close()
}
