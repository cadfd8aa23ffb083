package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/internal/fifo"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// Client is a self-repairing connection to a ZooKeeper ensemble, and the
// session on it. All methods are safe for concurrent use.
type Client struct {
	// Set at construction.
	cfg     config
	servers string // the connect string, for messages
	chroot  string // "" for none
	epoch   time.Time
	ctx     context.Context // done when the client stops connecting
	stop    context.CancelFunc
	first   chan struct{} // closed at the first connection

	// Owned by the goroutine that connects (run).
	hosts   *hosts
	backoff backoff

	// Own synchronisation.
	wg      sync.WaitGroup // every goroutine of the client
	closed  chan struct{}  // closed when Close has finished
	janitor chan struct{}  // one item per running clean-up

	mu sync.Mutex // protects the fields below

	session     *session
	state       StateChange
	subscribers map[*StateWatch]struct{}
	resuming    bool  // WithSession was given and there was no connection yet
	connectErr  error // why the last attempt to connect failed
	closing     bool  // Close or Detach has been called
	refusal     error // why operations are no longer accepted, or nil
	// lapsed is the last session that the client gave up by itself, until a server has
	// been asked to close it.
	lapsed *Credentials

	link     *link // nil while disconnected
	lastZxid znode.Zxid
	// restoreFrom is lastZxid, except while watches are being restored: then it
	// is the lastZxid of the previous connection, because the watches that the
	// server does not have yet may have missed everything since. Otherwise a
	// connection that breaks half-way would lose events.
	restoreFrom znode.Zxid
	restoring   int // setWatches that have not been answered
	auth        []credential
	watches     registry

	queue   fifo.Queue[operation] // operations that have no answer, the sent ones first
	xid     wire.Xid
	used    int // operations of callers in queue, and places granted to waiters
	bytes   int // their sizes
	waiters []*waiter
}

// Connect opens a session with the ensemble that servers names:
// "host:port,host:port/chroot". The port is 2181 by default; with a chroot every
// path of the client, also in results and events, is below it. Or servers is "dns-srv://name/chroot": the servers are
// those of the SRV records of name, which are looked up before each round of attempts.
//
// It returns when there is a session, or when ctx ends; ctx has no effect
// afterwards. The error contains the last server's answer. Connect retries
// unreachable servers until ctx ends, and warns of them on slog.Default (WithLogger):
// give ctx a deadline. Refused credentials (ErrAuthFailed) are final, and so are ports of
// another kind at all servers (ErrPortSpeaksHTTP, ErrPortSpeaksTLS, ErrPortSpeaksPlain).
func Connect(ctx context.Context, servers string, opts ...Option) (*Client, error) {
	cfg := defaultConfig()
	for _, o := range opts {
		o(&cfg)
	}
	list, service, chroot, err := parseServers(servers)
	if err == nil {
		err = cfg.check()
	}
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	c := newClient(cfg, servers, list, chroot)
	c.hosts.service, c.hosts.lookupSRV = service, cfg.lookupSRV
	c.wg.Go(c.run)
	if cfg.background {
		return c, nil
	}
	select {
	case <-c.first:
		return c, nil
	case <-ctx.Done():
		err = contextError(ctx)
	case <-c.ctx.Done():
		err = nil // connectErr has it
	}
	c.mu.Lock()
	last := c.connectErr
	c.mu.Unlock()
	c.end(ErrClosed)
	switch {
	case err == nil:
		err = last
	case last != nil:
		err = fmt.Errorf("%w; last attempt: %w", err, last)
	}
	return nil, fmt.Errorf("connecting to %s: %w", servers, err)
}

func newClient(cfg config, servers string, list []hostPort, chroot string) *Client {
	random := cfg.random()
	c := &Client{
		cfg: cfg, servers: servers, chroot: chroot, epoch: time.Now(),
		first: make(chan struct{}), closed: make(chan struct{}),
		janitor:     make(chan struct{}, maxCleanups),
		hosts:       newHosts(list, cfg.lookup, random),
		backoff:     backoff{min: cfg.backoffMin, max: cfg.backoffMax, random: random},
		session:     newSession(),
		subscribers: make(map[*StateWatch]struct{}),
		auth:        cfg.auth,
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.watches.c = c
	c.watches.paths = make(map[string]*pathWatches)
	c.state = StateChange{State: StateConnecting, Session: c.session.viewLocked()}
	if r := cfg.resume; r != nil {
		c.session.id, c.session.password = r.ID, r.Password
		c.resuming = true
	}
	return c
}

// Close ends the session, which deletes its ephemerals, and the client. Operations
// that were submitted earlier complete; later ones, watches and caches end with
// ErrClosed. Contexts of the session (Session.Context) end at once, and so do
// waits that use them. When Close returns, no goroutine is left.
//
// If there is no connection, or the server does not answer, the error is
// ErrNotClosed: the session ends when its timeout has passed. Later calls wait
// for the first and return nil.
func (c *Client) Close() error { return c.shut(true) }

// Detach ends the client as Close does, but leaves the session and its
// ephemerals to the server: until the timeout has passed, another client can
// continue it (WithSession).
func (c *Client) Detach() error { return c.shut(false) }

func (c *Client) shut(closeSession bool) error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		<-c.closed
		return nil
	}
	c.closing = true
	hasSession := c.session.id != 0 && !c.session.dead
	c.refuseLocked(ErrClosed)
	// The server deletes the ephemerals before its answer arrives. Work that
	// relies on them must stop earlier, because another client may hold them
	// then.
	c.session.lose(ErrClosed)
	var bye *Pending[struct{}]
	if closeSession && c.link != nil {
		if op := newCloseOp(c); c.pushLocked(op) == nil {
			bye = &op.Pending
		}
	}
	wait := min(maxCloseWait, max(c.session.timeout/3, minAttempt))
	c.mu.Unlock()

	var err error
	if bye != nil {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		_, err = bye.Wait(ctx)
		cancel()
	} else if closeSession && hasSession {
		err = errors.New("not connected")
	}
	c.end(ErrClosed)
	close(c.closed)
	if err != nil {
		return fmt.Errorf("closing: %w: %w", ErrNotClosed, err)
	}
	return nil
}

// end stops all goroutines and fails everything that waits.
func (c *Client) end(cause error) {
	c.mu.Lock()
	c.closing = true
	c.refuseLocked(cause)
	c.stop()
	if l := c.link; l != nil {
		c.detachLocked(l, cause)
	}
	if c.session.timer != nil {
		c.session.timer.Stop()
	}
	c.session.dead = true
	c.session.lose(cause)
	c.failQueueLocked(cause)
	c.watches.endAllLocked(cause)
	if c.state.State != StateClosed {
		c.setStateLocked(StateChange{State: StateClosed})
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// spawn runs f on a goroutine that Close waits for, and reports false if the
// client is being closed.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.wg.Go(f)
	return true
}

// Async has the operations of a Client in the form that does not wait for the answer.
// A method returns as soon as there is room for the request (WithMaxInFlight); its
// Pending gets the result later. Otherwise it is the method of Client with the same
// name.
type Async struct{ c *Client }

// Async returns the client's asynchronous operations.
func (c *Client) Async() Async { return Async{c} }
