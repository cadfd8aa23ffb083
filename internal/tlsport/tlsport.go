package tlsport

import (
	"crypto/tls"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"time"
)

// Options configure a Listener.
type Options struct {
	Config     *tls.Config
	PlainToo   bool // a client may also speak without TLS
	Handshakes *Handshakes
	// Failed is told of each handshake that fails; nil: nobody. It must not block.
	Failed func(from net.Addr, err error)
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
