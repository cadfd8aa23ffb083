// Package pipenet is a network of net.Pipe connections for tests in virtual time: addresses are any
// text, and hosts can be cut off, refuse or vanish. It starts no goroutine.
package pipenet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Network is a network of net.Pipe connections, for virtual time.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*Host
	// refused: dials from the first to the second address are refused, even if there is a
	// listener
	refused map[[2]string]bool
	// cut: dials between the two get no answer
	cut   map[[2]string]bool
	pipes map[*pipeEnd][2]string
	gone  map[string]bool // may not dial either
}

// Addr is an address on a Network.
type Addr string

// Network is the name that package net has for TCP.
func (Addr) Network() string { return "tcp" }

func (a Addr) String() string { return string(a) }

// Host is one listening address.
type Host struct {
	f    *Network
	addr string
	in   chan net.Conn
	done chan struct{}
	once sync.Once
}

// pipeEnd is one end of a connection, with addresses.
type pipeEnd struct {
	net.Conn
	f             *Network
	local, remote string
}

func (p *pipeEnd) LocalAddr() net.Addr  { return Addr(p.local) }
func (p *pipeEnd) RemoteAddr() net.Addr { return Addr(p.remote) }

func (p *pipeEnd) Close() error {
	p.f.mu.Lock()
	delete(p.f.pipes, p)
	p.f.mu.Unlock()
	return p.Conn.Close()
}

// New returns a network without hosts.
func New() *Network {
	return &Network{
		hosts: map[string]*Host{}, refused: map[[2]string]bool{},
		cut: map[[2]string]bool{}, pipes: map[*pipeEnd][2]string{}, gone: map[string]bool{},
	}
}

// Listen returns a listener at an address.
func (f *Network) Listen(addr string) *Host {
	h := &Host{f: f, addr: addr, in: make(chan net.Conn, 64), done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[addr] = h
	delete(f.gone, addr)
	return h
}

// Accept waits for a connection.
func (h *Host) Accept() (net.Conn, error) {
	select {
	case <-h.done:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-h.in:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Addr is the address that the host listens at.
func (h *Host) Addr() net.Addr { return Addr(h.addr) }

// Close refuses further dials and resets connections that were not accepted, like a kernel.
func (h *Host) Close() error {
	h.once.Do(func() {
		h.f.mu.Lock()
		if h.f.hosts[h.addr] == h {
			delete(h.f.hosts, h.addr)
		}
		close(h.done)
		h.f.mu.Unlock()
		for {
			select {
			case c := <-h.in:
				c.Close()
			default:
				return
			}
		}
	})
	return nil
}

// Dialer is the dial function of the server at from.
func (f *Network) Dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f.mu.Lock()
		h, cut := f.hosts[to], f.cut[[2]string{from, to}] || f.gone[from]
		refused := h == nil || f.refused[[2]string{from, to}]
		if cut {
			f.mu.Unlock()
			return nil, errors.New("no route to host")
		}
		if refused {
			f.mu.Unlock()
			return nil, fmt.Errorf("dial %s: %w", to, syscall.ECONNREFUSED)
		}
		a, b := net.Pipe()
		here := &pipeEnd{Conn: a, f: f, local: from, remote: to}
		there := &pipeEnd{Conn: b, f: f, local: to, remote: from}
		f.pipes[here] = [2]string{from, to}
		f.pipes[there] = [2]string{from, to}
		select {
		case h.in <- there:
		default:
			f.mu.Unlock()
			return nil, errors.New("backlog full")
		}
		f.mu.Unlock()
		return here, nil
	}
}

// Isolate cuts addr off from all others, or ends that. No connection survives the cut.
func (f *Network) Isolate(addr string, others []string, on bool) {
	f.mu.Lock()
	for _, o := range others {
		f.cut[[2]string{addr, o}] = on
		f.cut[[2]string{o, addr}] = on
	}
	f.mu.Unlock()
	if on {
		f.Drop(addr)
	}
}

// Drop ends every connection of addr.
func (f *Network) Drop(addr string) {
	f.DropIf(func(from, to string) bool { return from == addr || to == addr })
}

// Refuse refuses dials between two addresses, even if there is a listener.
func (f *Network) Refuse(from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused[[2]string{from, to}] = true
}

// Deafen keeps everything that from sends on connections of its own away from to.
func (f *Network) Deafen(from, to string) {
	f.mu.Lock()
	f.cut[[2]string{from, to}] = true
	f.mu.Unlock()
	f.DropIf(func(a, b string) bool { return a == from && b == to })
}

// DropIf ends the connections for whose dialling and dialled address match returns true.
func (f *Network) DropIf(match func(from, to string) bool) {
	f.mu.Lock()
	var ended []*pipeEnd
	for p, ends := range f.pipes {
		if match(ends[0], ends[1]) {
			ended = append(ended, p)
		}
	}
	f.mu.Unlock()
	for _, p := range ended {
		_ = p.Close()
	}
}

// Vanish does what a killed process does to the network: there is no listener, every connection
// ends, and no new one arrives from there.
func (f *Network) Vanish(addr string) {
	f.mu.Lock()
	f.gone[addr] = true
	h := f.hosts[addr]
	f.mu.Unlock()
	if h != nil {
		_ = h.Close()
	}
	f.Drop(addr)
}
