package mux

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/internal/repeats"
)

// Bounds of the mux.
const (
	// DefaultHelloTimeout is how long either side waits for the other's part of the hello: far
	// beyond any round trip, short enough that dead connections do not accumulate.
	DefaultHelloTimeout = 5 * time.Second
	// maxHellos bounds the connections whose hello is awaited. A server has a handful of peers
	// with a handful of connections each; this leaves room for all of them to return at once.
	maxHellos = 128
	// maxQueue bounds the connections of one kind that are admitted but not accepted yet.
	maxQueue = 64
	// maxInbound bounds the established inbound connections of all kinds: ensembles have at most
	// tens of servers, raft holds about four connections for each.
	maxInbound = 1024
	// maxStrangers bounds the inbound connections of strangers. They do not count toward maxInbound and cannot fill a
	// queue, so a member always finds room. A stranger that joins has its answer in well under a second.
	maxStrangers = maxQueue / 2
)

// Config configures New.
type Config struct {
	// Listener gives the inbound connections. Required; the mux closes it.
	Listener net.Listener
	// Dial makes an outbound connection. Required. Both may speak TLS.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Guard decides who the other side of a connection is. Nil means Credulous.
	Guard Guard
	// Advertise is the address under which the other servers know this one, as in raft's
	// configuration. Empty means the listener's own address.
	Advertise string
	// Logger gets refused connections as warnings, everything else at debug. Nil means none.
	Logger *slog.Logger
	// HelloTimeout replaces DefaultHelloTimeout when it is positive.
	HelloTimeout time.Duration
}

// Guard authenticates the other side of a connection.
type Guard interface {
	// Secure starts TLS on a connection that Config.Dial has made to addr. On an error it closes the connection.
	// Probes (DialBare) use no TLS.
	Secure(ctx context.Context, c net.Conn, kind Kind, addr string) (net.Conn, error)
	// Verify returns why the other side of an inbound connection is not the server that its hello names (NoServer:
	// it names none, on a control connection).
	Verify(c net.Conn, kind Kind, from uint64) error
	// Stranger reports whether the other side of an inbound connection has not proved to be a known server.
	Stranger(c net.Conn) bool
}

// Credulous is a Guard that believes everyone and leaves connections as they are.
type Credulous struct{}

// Secure implements Guard.
func (Credulous) Secure(_ context.Context, c net.Conn, _ Kind, _ string) (net.Conn, error) {
	return c, nil
}

// Verify implements Guard.
func (Credulous) Verify(net.Conn, Kind, uint64) error { return nil }

// Stranger implements Guard.
func (Credulous) Stranger(net.Conn) bool { return false }

// address is a net.Addr given as text.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// raftGate is whether raft connections are admitted.
type raftGate uint8

const (
	gateOpen   raftGate = iota
	gateCut             // between CutRaft and RestoreRaft
	gateClosed          // forever: CloseRaft
)

// Mux is the one listener of a server for all traffic between servers. Its methods are safe for concurrent use.
type Mux struct {
	// set at construction
	cfg       Config
	logger    *slog.Logger
	advertise net.Addr
	queues    [kinds]chan *Conn

	// own synchronisation
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// see SetRaft
	member     atomic.Pointer[func(addr string) uint64]
	raftEnded  atomic.Pointer[func()]
	raftClosed context.Context // ends with CloseRaft
	closeRaft  context.CancelFunc
	repeats    repeats.Filter
	Refused    atomic.Int64 // inbound connections that were refused, or sent no valid hello

	mu       sync.Mutex // protects the fields below
	ensemble [16]byte
	id       uint64 // NoServer before SetIdentity
	closed   bool
	gate     raftGate
	http     bool               // the listener of ListenHTTP is open
	awaiting *list.List         // of net.Conn, whose hello is awaited, in the order in which they came
	conns    map[*Conn]struct{} // established, both directions
	inbound  int                // of conns, without strangers
	waiting  [kinds]int         // places taken in queues, reserved ones included

	strangers *list.List // of *Conn, of conns, in the order of arrival
}

// New starts accepting at once. Until SetIdentity only control connections are admitted.
// Close stops it.
func New(cfg Config) *Mux {
	if cfg.HelloTimeout <= 0 {
		cfg.HelloTimeout = DefaultHelloTimeout
	}
	if cfg.Guard == nil {
		cfg.Guard = Credulous{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Mux{
		cfg:       cfg,
		logger:    cfg.Logger,
		advertise: cfg.Listener.Addr(),
		id:        NoServer,
		awaiting:  list.New(),
		strangers: list.New(),
		conns:     map[*Conn]struct{}{},
	}
	if cfg.Advertise != "" {
		m.advertise = address(cfg.Advertise)
	}
	for k := range m.queues {
		m.queues[k] = make(chan *Conn, maxQueue)
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.raftClosed, m.closeRaft = context.WithCancel(m.ctx)
	m.wg.Add(1)
	go m.listen()
	return m
}

// SetIdentity makes this server a member: from now on all connections within the ensemble are admitted
// and can be dialled. The ensemble may not be zero, nor id NoServer. Setting
// the same again does nothing; an identity never changes, so another one panics.
func (m *Mux) SetIdentity(ensemble [16]byte, id uint64) {
	if ensemble == ([16]byte{}) || id >= NoServer {
		panic("mux: invariant broken: an identity has an ensemble and a server id")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.id != NoServer && (m.id != id || m.ensemble != ensemble) {
		panic(fmt.Sprintf("mux: invariant broken: identity %x/%d changes to %x/%d",
			m.ensemble, m.id, ensemble, id))
	}
	m.ensemble, m.id = ensemble, id
}

// Addr is the advertised address of this server.
func (m *Mux) Addr() net.Addr { return m.advertise }

// SetRaft sets what raft's transport contributes. The function member returns the id of the server
// that raft's configuration has at an address, or NoServer. The function ended is called when an inbound
// raft connection ends; it must not block, and may be nil.
func (m *Mux) SetRaft(member func(addr string) uint64, ended func()) {
	m.member.Store(&member)
	if ended != nil {
		m.raftEnded.Store(&ended)
	}
}

// Accept waits for the next connection of a kind and returns it with its hello done. The error is
// net.ErrClosed after Close, for raft's kinds also after CloseRaft.
func (m *Mux) Accept(kind Kind) (*Conn, error) {
	ctx := m.ctx
	if kind.raft() {
		ctx = m.raftClosed
	}
	return m.accept(ctx, kind)
}

// accept is Accept until ctx ends.
func (m *Mux) accept(ctx context.Context, kind Kind) (*Conn, error) {
	if ctx.Err() != nil {
		return nil, net.ErrClosed
	}
	select {
	case c := <-m.queues[kind]:
		m.mu.Lock()
		m.waiting[kind]--
		m.mu.Unlock()
		return c, nil
	case <-ctx.Done():
		return nil, net.ErrClosed
	}
}

// CutRaft closes all raft connections of both directions and admits no new one until RestoreRaft. It is
// for the watchdog of a leader whose disk hangs: raft's heartbeats continue while its main loop is stuck,
// so the others would never elect without it. Inbound raft connections are refused too, because a stuck
// main loop answers nothing.
func (m *Mux) CutRaft() { m.shutRaft(gateCut) }

// RestoreRaft ends the effect of CutRaft.
func (m *Mux) RestoreRaft() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gate == gateCut {
		m.gate = gateOpen
	}
}

// CloseRaft ends all raft connections for good, those being dialled included, and nothing else.
func (m *Mux) CloseRaft() {
	m.closeRaft()
	m.shutRaft(gateClosed)
}

func (m *Mux) shutRaft(to raftGate) {
	m.mu.Lock()
	if m.gate != gateClosed {
		m.gate = to
	}
	m.mu.Unlock()
	m.abort(func(c *Conn) bool { return c.kind.raft() })
}

// CutServer ends all connections with a server, which has to prove again who it is.
func (m *Mux) CutServer(id uint64) { m.abort(func(c *Conn) bool { return c.peer == id }) }

// abort ends the connections that are chosen.
func (m *Mux) abort(chosen func(*Conn) bool) {
	m.mu.Lock()
	var ended []*Conn
	for c := range m.conns {
		if chosen(c) {
			ended = append(ended, c)
		}
	}
	m.mu.Unlock()
	for _, c := range ended {
		c.abort()
	}
}

// Close stops accepting, closes the listener and every connection that the mux has made or
// accepted, and waits for its goroutines.
func (m *Mux) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		m.wg.Wait()
		return nil
	}
	m.closed = true
	m.cancel()
	m.gate = gateClosed
	ended := make([]*Conn, 0, len(m.conns))
	for c := range m.conns {
		ended = append(ended, c)
	}
	awaiting := make([]net.Conn, 0, m.awaiting.Len())
	for e := m.awaiting.Front(); e != nil; e = e.Next() {
		c, _ := e.Value.(net.Conn)
		awaiting = append(awaiting, c)
	}
	m.mu.Unlock()

	err := m.cfg.Listener.Close()
	for _, c := range awaiting {
		abort(c)
	}
	for _, c := range ended {
		c.abort()
	}
	m.wg.Wait()
	if err != nil {
		return fmt.Errorf("mux: closing the listener: %w", err)
	}
	return nil
}
