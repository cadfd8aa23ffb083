package zk

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// Server is what the door needs of *server.Server.
type Server interface {
	NewConn(client server.Client, identities []znode.ID) *server.Conn
	View(visit func(v *server.View))
	Status() server.Status
	Serving() bool
	Config() server.Config
	Authenticate(credentials string) []znode.ID
}

// Door serves ZooKeeper's protocol.
type Door struct {
	srv     Server
	cfg     Config
	logger  *slog.Logger
	words   map[string]word // all there are
	allowed map[string]bool // those that are answered
	started time.Time
	buffers buffers
	pool    sync.Pool // of *request
	pongs   pongs
	trace   atomic.Int64

	authFailed atomic.Int64
	refusals   repeats.Filter // of connections, by their reasons

	running sync.WaitGroup // the goroutines of connections

	mu         sync.Mutex // protects the fields below
	listeners  map[net.Listener]struct{}
	conns      map[*conn]struct{}
	perAddress map[netip.Addr]int
	past       tally // of connections that have gone, since the start or srst
	rejected   int64 // connections over a limit
	stopping   bool
}

// defaultTrace is ZooKeeper's default trace mask, which gtmk prints.
const defaultTrace = 306

// New returns a door to srv. Serve opens it.
func New(srv Server, cfg Config) *Door {
	d := &Door{
		srv: srv, cfg: cfg.withDefaults(), started: time.Now(),
		listeners:  map[net.Listener]struct{}{},
		conns:      map[*conn]struct{}{},
		perAddress: map[netip.Addr]int{},
	}
	d.logger, d.words, d.allowed = d.cfg.Logger, words(), d.cfg.allowed()
	d.trace.Store(defaultTrace)
	return d
}

// Serve accepts connections until Shutdown, and then returns nil. It closes l.
// Several listeners may be served at once. They had better have TCP's keep-alive
// off, as ZooKeeper's has: sessions have heartbeats of their own, and thousands of
// idle connections should cost nothing.
func (d *Door) Serve(l net.Listener) error {
	defer l.Close()
	d.mu.Lock()
	if d.stopping {
		d.mu.Unlock()
		return nil
	}
	d.listeners[l] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.listeners, l)
		d.mu.Unlock()
	}()
	pause := time.Duration(0)
	for {
		c, err := l.Accept()
		if err == nil {
			pause = 0
			d.admit(c)
			continue
		}
		if d.isStopping() {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		// Out of file descriptors, most likely: others may be closed meanwhile.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		d.logger.Warn("accepting a client failed", "error", err, "retry_in", pause)
		<-time.After(pause)
	}
}

func (d *Door) isStopping() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopping
}

// admit starts the goroutine of a connection that is within the limits; one
// beyond them is closed without a word, as ZooKeeper does.
func (d *Door) admit(nc net.Conn) {
	c := newConn(d, nc)
	d.mu.Lock()
	over := ""
	switch {
	case d.stopping:
		over = "stopping"
	case d.cfg.MaxConnections > 0 && len(d.conns) >= d.cfg.MaxConnections:
		over = "maxCnxns"
	case d.cfg.MaxPerAddress > 0 && d.perAddress[c.address] >= d.cfg.MaxPerAddress:
		over = "maxClientCnxns"
	default:
		d.conns[c] = struct{}{}
		d.perAddress[c.address]++
		d.running.Add(1)
	}
	if over != "" {
		d.rejected++
	}
	d.mu.Unlock()
	switch over {
	case "":
		go c.run()
		return
	case "stopping":
		d.logger.Debug("client refused", "remote", c.remote, "reason", over)
	default:
		d.logRefusal(over, "remote", c.remote, "limit", over)
	}
	_ = nc.Close()
}

// logRefusal logs that a client was turned away, for the same reason once in a while
// only: it comes again, and others do.
func (d *Door) logRefusal(reason string, args ...any) {
	level := slog.LevelWarn
	switch pass, leftOut := d.refusals.Pass(reason); {
	case !pass:
		level = slog.LevelDebug
	case leftOut > 0:
		args = append(args, "left_out", leftOut)
	}
	d.logger.Log(context.Background(), level, "client refused", args...)
}

// remove forgets a connection that has gone.
func (d *Door) remove(c *conn) {
	d.mu.Lock()
	delete(d.conns, c)
	if d.perAddress[c.address]--; d.perAddress[c.address] <= 0 {
		delete(d.perAddress, c.address)
	}
	c.out.mu.Lock()
	d.past.add(&c.out.stats.server)
	c.out.mu.Unlock()
	d.mu.Unlock()
	d.running.Done()
}

// Shutdown closes the listeners, ends the connections once their last replies
// are sent, and waits for all goroutines. When ctx ends first, connections are
// cut without waiting for their goroutines, and its error is returned.
func (d *Door) Shutdown(ctx context.Context) error {
	d.pongs.close()
	d.mu.Lock()
	d.stopping = true
	for l := range d.listeners {
		_ = l.Close() // Serve returns
	}
	for c := range d.conns {
		c.Disconnect(server.ReasonStopping)
	}
	d.mu.Unlock()
	done := make(chan struct{})
	go func() {
		d.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	d.mu.Lock()
	for c := range d.conns {
		_ = c.net.Close()
	}
	d.mu.Unlock()
	return ctx.Err()
}
