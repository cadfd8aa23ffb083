package main

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// proxy stands between a command and the server, and can be closed as a
// network can.
type proxy struct {
	listener net.Listener
	server   string
	wg       sync.WaitGroup

	mu     sync.Mutex // protects the fields below
	conns  map[net.Conn]bool
	closed bool // no traffic
	cutAt  int  // close behind the next request with this number
}

func startProxy(server string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, server: server, conns: map[net.Conn]bool{}}
	p.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.forward(in) })
		}
	})
	return p, nil
}

func (p *proxy) forward(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer out.Close()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.conns[in], p.conns[out] = true, true
	p.mu.Unlock()
	var wg sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		to.Close()
		from.Close()
	}
	wg.Go(func() { pipe(out, &requests{Conn: in, proxy: p}) })
	wg.Go(func() { pipe(in, out) })
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, in)
	delete(p.conns, out)
}

// set lets traffic through, or none.
func (p *proxy) set(open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = !open
	if p.closed {
		for c := range p.conns {
			c.Close()
		}
	}
}

// cut closes the proxy behind the next request with a number: the server has it,
// and the client gets no answer.
func (p *proxy) cut(op int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAt = op
}

// requests are the bytes that a client sends, one frame with each Read.
type requests struct {
	net.Conn
	proxy *proxy
	begun bool
	text  bool // no frames follow
	rest  []byte
	cut   bool // the last frame has been handed on
}

func (r *requests) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.cut {
			return 0, io.EOF // not closed once more: the script may have opened the proxy
		}
		if r.text {
			return r.Conn.Read(b)
		}
		frame := make([]byte, 4)
		if _, err := io.ReadFull(r.Conn, frame); err != nil {
			return 0, err
		}
		if r.text = !r.begun && frame[0] != 0; r.text { // a four-letter word, or HTTP
			return copy(b, frame), nil
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(r.Conn, frame[4:]); err != nil {
			return 0, err
		}
		if r.begun && len(frame) >= 12 {
			r.proxy.mu.Lock()
			r.cut = r.proxy.cutAt != 0 && int(binary.BigEndian.Uint32(frame[8:])) == r.proxy.cutAt
			if r.cut {
				// Before the server can answer: no reply comes through.
				for c := range r.proxy.conns {
					if c == r.Conn {
						c.Close()
					}
				}
				r.proxy.cutAt, r.proxy.closed = 0, true
			}
			r.proxy.mu.Unlock()
		}
		r.begun, r.rest = true, frame
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (p *proxy) stop() {
	p.listener.Close()
	p.set(false)
	p.wg.Wait()
}

type proxyKey struct{}
