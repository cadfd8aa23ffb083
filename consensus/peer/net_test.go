package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
)

// fabric is a network of net.Pipe connections, for virtual time.
type fabric struct {
	mu    sync.Mutex
	hosts map[string]*host
	// refused: dials from the first to the second address are refused, whoever listens
	refused map[[2]string]bool
	// cut: dials between the two get no answer
	cut   map[[2]string]bool
	pipes map[*pipeEnd][2]string
	gone  map[string]bool // may not dial either
}

// host is one listening address.
type host struct {
	f    *fabric
	addr string
	in   chan net.Conn
	done chan struct{}
	once sync.Once
}

// pipeEnd is one end of a connection, with addresses.
type pipeEnd struct {
	net.Conn
	f             *fabric
	local, remote string
}

func (p *pipeEnd) LocalAddr() net.Addr  { return address(p.local) }
func (p *pipeEnd) RemoteAddr() net.Addr { return address(p.remote) }

func (p *pipeEnd) Close() error {
	p.f.mu.Lock()
	delete(p.f.pipes, p)
	p.f.mu.Unlock()
	return p.Conn.Close()
}

func newFabric() *fabric {
	return &fabric{
		hosts: map[string]*host{}, refused: map[[2]string]bool{},
		cut: map[[2]string]bool{}, pipes: map[*pipeEnd][2]string{}, gone: map[string]bool{},
	}
}

func (f *fabric) listen(addr string) *host {
	h := &host{f: f, addr: addr, in: make(chan net.Conn, 64), done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[addr] = h
	return h
}

func (h *host) Accept() (net.Conn, error) {
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

func (h *host) Addr() net.Addr { return address(h.addr) }

// Close refuses further dials and resets what was not accepted, like a kernel.
func (h *host) Close() error {
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

// dialer is the dial function of the server at from.
func (f *fabric) dialer(from string) func(context.Context, string) (net.Conn, error) {
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

// isolate cuts addr off from everybody, or ends that. No connection survives the cut.
func (f *fabric) isolate(addr string, others []string, on bool) {
	f.mu.Lock()
	for _, o := range others {
		f.cut[[2]string{addr, o}] = on
		f.cut[[2]string{o, addr}] = on
	}
	f.mu.Unlock()
	if on {
		f.drop(addr)
	}
}

// drop ends every connection of addr.
func (f *fabric) drop(addr string) {
	f.dropIf(func(from, to string) bool { return from == addr || to == addr })
}

// deafen keeps whatever from would send on connections of its own away from to.
func (f *fabric) deafen(from, to string) {
	f.mu.Lock()
	f.cut[[2]string{from, to}] = true
	f.mu.Unlock()
	f.dropIf(func(a, b string) bool { return a == from && b == to })
}

func (f *fabric) dropIf(match func(from, to string) bool) {
	f.mu.Lock()
	var ended []*pipeEnd
	for p, ends := range f.pipes {
		if match(ends[0], ends[1]) {
			ended = append(ended, p)
		}
	}
	f.mu.Unlock()
	for _, p := range ended {
		p.Close()
	}
}

// vanish is what the network sees of a killed process: nobody listens, every connection ends, and
// none comes from there any more.
func (f *fabric) vanish(addr string) {
	f.mu.Lock()
	f.gone[addr] = true
	h := f.hosts[addr]
	f.mu.Unlock()
	if h != nil {
		h.Close()
	}
	f.drop(addr)
}

var testEnsemble = [16]byte{1, 2, 3}

// newTestMux makes a mux on the fabric; it is closed with the test.
func newTestMux(t *testing.T, f *fabric, addr string, id uint64) *Mux {
	t.Helper()
	m := NewMux(MuxConfig{Listener: f.listen(addr), Dial: f.dialer(addr)})
	if id != 0 {
		m.SetIdentity(testEnsemble, id)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func rafts(addr string) raft.ServerAddress { return raft.ServerAddress(addr) }
