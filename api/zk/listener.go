package zk

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/rawconn"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// Listener serves ZooKeeper's protocol.
type Listener struct {
	srv      *server.Server
	usage    *insight.Usage
	cfg      Config
	logger   *slog.Logger
	words    map[string]word // all there are
	allowed  map[string]bool // those that are answered
	started  time.Time
	buffers  buffers
	partial  shares // of requests that have arrived in part, in the order in which they began
	outboxes shares // of replies and events, in the order in which their clients last took some
	replies  replyRoom
	throttle *throttle
	slots    requestSlots
	pool     sync.Pool // of *request
	times    [timeShards]times
	nextConn atomic.Uint32
	trace    atomic.Int64

	authFailed  atomic.Int64
	longReplies atomic.Int64   // requests refused for their reply
	refusals    repeats.Filter // of connections, by their reasons

	trees trees

	poller  rawconn.Poller // of idle connections
	running sync.WaitGroup // connections, and the goroutines that list subtrees

	mu         sync.Mutex // protects the fields below
	listeners  map[net.Listener]struct{}
	conns      map[*conn]struct{}
	perAddress map[netip.Addr]int
	past       counters // of former connections, since the start or srst
	wordsOnly  int      // connections that may send no more than a four-letter word
	rejected   int64    // connections over a limit
	stopping   bool
}

// maxWordsOnly is how many connections may send a four-letter word when no descriptors are left
// for clients. One that sends anything else first is refused then.
const maxWordsOnly = 16

// defaultTrace is ZooKeeper's default trace mask, which gtmk prints.
const defaultTrace = 306

// New returns a Listener for srv, which accepts nothing before Serve.
func New(srv *server.Server, cfg Config) *Listener {
	d := &Listener{
		srv: srv, usage: srv.Usage(), cfg: cfg.withDefaults(), started: time.Now(),
		listeners:  map[net.Listener]struct{}{},
		conns:      map[*conn]struct{}{},
		perAddress: map[netip.Addr]int{},
	}
	d.trees = trees{listing: &d.running, open: map[znode.SessionID]*openTree{}}
	d.throttle = newThrottle(d.cfg.Throttle)
	if d.cfg.MaxRequests > 0 {
		d.slots = make(requestSlots, d.cfg.MaxRequests)
	}
	d.logger, d.words, d.allowed = d.cfg.Logger, words(), d.cfg.allowed()
	d.trace.Store(defaultTrace)
	d.outboxes.limit, d.outboxes.close = d.cfg.OutboxTotal, d.closeUnread
	d.partial.limit, d.partial.close, d.partial.spare = int64(d.cfg.PartialBytes), d.closePartial, true
	d.replies.limit = d.cfg.OutboxTotal
	return d
}

// Serve accepts connections until Shutdown, and then returns nil. It closes l.
// Several listeners may be served at once. TCP's keep-alive should be off, as in ZooKeeper:
// sessions have heartbeats of their own, and thousands of idle connections should cost
// nothing.
func (ln *Listener) Serve(l net.Listener) error {
	defer l.Close()
	ln.mu.Lock()
	if ln.stopping {
		ln.mu.Unlock()
		return nil
	}
	ln.listeners[l] = struct{}{}
	ln.mu.Unlock()
	defer func() {
		ln.mu.Lock()
		delete(ln.listeners, l)
		ln.mu.Unlock()
	}()
	pause := time.Duration(0)
	for {
		c, err := l.Accept()
		if err == nil {
			pause = 0
			ln.admit(c)
			continue
		}
		if ln.isStopping() {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		// Out of file descriptors, most likely: others may be closed meanwhile.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		ln.logger.Warn("accepting a client failed", "error", err, "retry_in", pause)
		<-time.After(pause)
	}
}

func (ln *Listener) isStopping() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.stopping
}

// admit starts the goroutine of a connection that is within the limits; one
// beyond them is closed without an answer, as in ZooKeeper.
func (ln *Listener) admit(nc net.Conn) {
	c := newConn(ln, nc)
	ln.mu.Lock()
	within := ln.cfg.Descriptors.Take()
	over := ""
	switch {
	case ln.stopping:
		over = "stopping"
	case !within && ln.wordsOnly >= maxWordsOnly:
		over = process.DescriptorLimit
	case ln.cfg.MaxConnections > 0 && len(ln.conns) >= ln.cfg.MaxConnections:
		over = "maxCnxns"
	case ln.cfg.MaxPerAddress > 0 && ln.perAddress[c.address] >= ln.cfg.MaxPerAddress:
		over = "maxClientCnxns"
	default:
		ln.conns[c] = struct{}{}
		ln.perAddress[c.address]++
		ln.running.Add(1)
		if c.wordsOnly = !within; c.wordsOnly {
			ln.wordsOnly++
		}
	}
	ln.mu.Unlock()
	switch over {
	case "":
		go c.run()
		return
	case "stopping":
		ln.logger.Debug("client refused", "remote", c.remote, "reason", over)
	default:
		ln.refuse(c, over)
	}
	_ = nc.Close()
	ln.cfg.Descriptors.Return()
}

// refuse counts and logs a client that is over a limit.
func (ln *Listener) refuse(c *conn, limit string) {
	ln.mu.Lock()
	ln.rejected++
	ln.mu.Unlock()
	if limit == process.DescriptorLimit {
		ln.cfg.Descriptors.Refuse()
	}
	ln.logRefusal(limit, "remote", c.remote, "limit", limit)
}

// closePartial closes a connection because other partial frames need its room.
func (ln *Listener) closePartial(c net.Conn) {
	ln.logRefusal("largeRequestMaxBytes", "remote", c.RemoteAddr(), "limit", "largeRequestMaxBytes")
	_ = c.Close()
}

// closeUnread closes a connection whose client does not read, because others need its room.
func (ln *Listener) closeUnread(c net.Conn) {
	ln.logRefusal("limits.outboxTotalBytes", "remote", c.RemoteAddr(), "limit", ln.cfg.OutboxTotal)
	_ = c.Close()
}

// logRefusal logs that a client was refused, for the same reason once a minute only: clients
// try again.
func (ln *Listener) logRefusal(reason string, args ...any) {
	level := slog.LevelWarn
	switch pass, leftOut := ln.refusals.Pass(reason); {
	case !pass:
		level = slog.LevelDebug
	case leftOut > 0:
		args = append(args, "left_out", leftOut)
	}
	ln.logger.Log(context.Background(), level, "client refused", args...)
}

// remove drops a connection that has ended.
func (ln *Listener) remove(c *conn) {
	ln.mu.Lock()
	delete(ln.conns, c)
	if ln.perAddress[c.address]--; ln.perAddress[c.address] <= 0 {
		delete(ln.perAddress, c.address)
	}
	c.out.mu.Lock()
	ln.past.add(&c.out.stats.server)
	c.out.mu.Unlock()
	if c.wordsOnly {
		ln.wordsOnly--
	}
	ln.cfg.Descriptors.Return() // before anyone can see that the connection has ended
	ln.mu.Unlock()
	ln.running.Done()
}

// Shed disconnects about percent of the clients that have sessions, by chance, and returns how many. They go to another
// server, or come back (shed_connections of ZooKeeper 3.10's AdminServer).
func (ln *Listener) Shed(percent int) (n int) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for c := range ln.conns {
		if c.session() != 0 && rand.IntN(100) < percent {
			c.Disconnect(server.ReasonShed)
			n++
		}
	}
	return n
}

// Shutdown closes the listeners, ends the connections once their last replies
// are sent, and waits for all goroutines. When ctx ends first, connections are
// cut without waiting for their goroutines, and its error is returned.
func (ln *Listener) Shutdown(ctx context.Context) error {
	ln.mu.Lock()
	ln.stopping = true
	for l := range ln.listeners {
		_ = l.Close() // Serve returns
	}
	for c := range ln.conns {
		c.Disconnect(server.ReasonStopping)
	}
	ln.mu.Unlock()
	defer ln.poller.Close() // after the connections, or when they are closed
	ln.trees.close()
	done := make(chan struct{})
	go func() {
		ln.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	ln.mu.Lock()
	for c := range ln.conns {
		_ = c.net.Close()
	}
	ln.mu.Unlock()
	return ctx.Err()
}
