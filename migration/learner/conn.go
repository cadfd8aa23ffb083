package learner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/jute"
)

// conn is a connection to a leader, which has sent LEADERINFO. It has one reader; any goroutine may send.
type conn struct {
	net.Conn
	server  string
	epoch   int64
	in      *bufio.Reader
	packets *jute.Stream
	reading time.Duration // that a read may take; 0: the connection's own deadline counts
	writing time.Duration // that a write may take
	budget  int64         // bytes that may still be read, about
	syncs   atomic.Int64  // requests that wait for SYNC

	mu     sync.Mutex // keeps packets apart, and orders them; protects the fields below
	out    []byte
	failed error // of a write, which has closed the connection; nil: none
}

const (
	readBuffer = 256 << 10
	noBudget   = math.MaxInt64
)

func newConn(raw net.Conn, server string, cfg *Config) *conn {
	c := &conn{Conn: raw, server: server, writing: cfg.Timeout, budget: noBudget}
	c.in = bufio.NewReaderSize(timedReader{c}, readBuffer)
	c.packets = jute.NewStream(c.in, cfg.MaxPacket)
	return c
}

// timedReader gives each read of a connection its own deadline, and bounds the bytes.
type timedReader struct{ c *conn }

func (r timedReader) Read(b []byte) (int, error) {
	if r.c.reading > 0 {
		_ = r.c.SetReadDeadline(time.Now().Add(r.c.reading)) // if it fails, so does Read, with a better reason
	}
	if r.c.budget <= 0 {
		return 0, fmt.Errorf("%w: more than MaxSnapshot allows", ErrProtocol)
	}
	n, err := r.c.Conn.Read(b)
	r.c.budget -= int64(n)
	return n, err
}

// read reads a packet.
func (c *conn) read() (packet, error) {
	p, err := readPacket(c.packets)
	return p, c.explain(err)
}

// explain says what an error of the connection's reader means.
func (c *conn) explain(err error) error {
	switch bad := new(jute.Error); {
	case errors.Is(err, jute.ErrTruncated), errors.Is(err, io.EOF):
		return fmt.Errorf("the leader has ended the connection: %w", err)
	case errors.As(err, &bad): // a bound that was reached, or a length that cannot be
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the leader was silent for %v: %w", c.reading, err)
	}
	return err
}

// send writes a packet. After an error the connection is of no further use.
func (c *conn) send(p packet) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(p)
}

// write is send with c.mu held.
func (c *conn) write(p packet) error {
	_ = c.SetWriteDeadline(time.Now().Add(c.writing))
	c.out = p.append(c.out[:0])
	_, err := c.Write(c.out)
	if err != nil {
		c.Close() // a part may have been written
		c.failed = fmt.Errorf("writing to the leader: %w", err)
		return c.failed
	}
	return nil
}

// end closes the connection, and returns why it has ended: err, unless that is only what follows from a failed write.
func (c *conn) end(err error) error {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return c.failed
	}
	return err
}
