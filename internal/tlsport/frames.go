package tlsport

import (
	"encoding/binary"
	"net"
	"sync"
)

// WriteFrames writes b, a part of a stream of frames that begin with their length (4 bytes, big-endian). With TLS, no
// record carries the end of one frame and the beginning of the next: ZooKeeper's C client reads one reply each time
// that poll finds bytes at the socket, and what OpenSSL holds already is not there. All frames still go out in one
// write. A client that has agreed on tlsfiles.Batches has no such need.
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
