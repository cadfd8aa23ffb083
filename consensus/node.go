package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/raftlogger"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/znode"
)

// Node is one server's part in the agreement.
type Node struct {
	cfg    Config
	logger *slog.Logger
	start  time.Time

	ctx    context.Context // ends with the node; its cause is ErrStopped
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup

	mux       *mux.Mux
	transport *transport.Transport
	disk      *storage.Monitor
	queue     *forward.Queue
	forwarder *forward.Forwarder
	ensemble  *membership.Ensemble
	fsm       *fsm
	check     *checker
	published publisher
	elections elections

	starting     sync.Mutex // Close comes before raft's start, or after it
	raft         *raft.Raft // set before ready is closed
	ready        chan struct{}
	wantSnapshot chan struct{} // capacity 1

	commits, applies histogram.Histogram
	snapshots        snapshotStats

	members       atomic.Pointer[map[state.ServerID]state.Member] // as applied here
	configuration atomic.Pointer[map[state.ServerID]bool]         // the same: all servers, and whether they vote
	applied       atomic.Uint64
	level         atomic.Uint32                    // the ensemble's state.Level, as applied here
	identity      atomic.Pointer[storage.Identity] // nil: this server belongs to no ensemble yet
	failed        atomic.Bool
	halted        atomic.Pointer[Halt] // nil: it is not
}

// Open starts a server. It returns at once; an ensemble that does not exist
// yet is bootstrapped in the background. The storage is the node's from now
// on. An error means that the configuration is wrong, or the storage is.
func Open(cfg Config) (*Node, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	n := &Node{
		cfg: cfg, logger: cfg.Logger, start: time.Now(),
		ready: make(chan struct{}), wantSnapshot: make(chan struct{}, 1),
		published: publisher{newest: leadership{leader: state.NoServer}, lastLeader: state.NoServer},
	}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	lastLife, incarnation, err := nextIncarnation(cfg.Storage.Stable)
	if err != nil {
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	if at, ok := cfg.Storage.SnapshotTime(); ok {
		n.snapshots.last.Store(at.Unix())
	}
	n.check = newChecker(n, lastLife)
	n.assemble(incarnation)
	if err := n.openEnsemble(); err != nil {
		n.cancel(forward.ErrStopped)
		err = errors.Join(err, n.transport.Close(), n.mux.Close())
		n.tasks.Wait()
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	return n, nil
}

// assemble makes the node's parts, and passes to each the functions of the others that it needs.
func (n *Node) assemble(incarnation uint64) {
	cfg := &n.cfg
	listener := cfg.Listener
	if listener == nil {
		listener = mux.NoListener()
	}
	n.mux = mux.New(mux.Config{
		Listener: cfg.Keys.Listener(listener), Dial: n.dial, Secure: n.secure, Verify: n.verify,
		Stranger:  func(c net.Conn) bool { return !cfg.Keys.Bound(c) },
		Advertise: membership.AddressOf(cfg.ID), Logger: n.logger,
	})
	n.transport = transport.New(transport.Config{
		Mux: n.mux, LocalID: transport.RaftID(uint64(cfg.ID)), Log: cfg.Storage.Log, Logger: n.logger,
		RaftLogger:  raftlogger.New(n.ctx, n.logger, raftlogger.Net),
		PersistTerm: func() { n.disk.PersistTerm() },
		Options: transport.Options{
			NoPush: cfg.NoPush, NoOverlap: cfg.NoOverlap, NoFailover: cfg.NoFailover, Silence: cfg.ElectionTimeout,
		},
	})
	n.disk = storage.NewMonitor(storage.MonitorConfig{
		Store: &cfg.Storage, ElectionTimeout: cfg.ElectionTimeout, Logger: n.logger,
		Now: n.now, Fatal: n.fatal, Stopping: n.ctx, Alone: n.alone,
		Applied: func() uint64 { return n.check.record.Newest().Index }, Forked: n.check.truncated,
	})
	n.queue = forward.NewQueue(state.Origin{Server: cfg.ID, Incarnation: incarnation},
		cfg.MaxPending, cfg.MaxPendingBytes)
	n.forwarder = forward.New(forward.Config{
		Self: cfg.ID, ElectionTimeout: cfg.ElectionTimeout, Logger: n.logger, Queue: n.queue, Now: n.now,
		Leader: func() (state.ServerID, <-chan struct{}) {
			l, changed := n.published.now()
			return l.leader, changed
		},
		Leads: n.leads, Touched: cfg.Handler.Touched, Leading: n.noteLeading,
		TreeLimit: cfg.TreeLimit, Voters: func() map[state.ServerID]bool { return n.ensemble.Voters() },
		Dial: func(ctx context.Context, to state.ServerID) (net.Conn, error) {
			return n.mux.Dial(ctx, mux.KindStream, membership.AddressOf(to), uint64(to))
		},
		Accept: func() (net.Conn, state.ServerID, error) {
			conn, err := n.mux.Accept(mux.KindStream)
			if err != nil {
				return nil, 0, err
			}
			return conn, state.ServerID(conn.ServerID()), nil
		},
		Go: n.tasks.Go,
	})
	n.ensemble = membership.New(membership.Config{
		Self: cfg.ID, Servers: cfg.Servers, Standalone: cfg.standalone(), ElectionTimeout: cfg.ElectionTimeout,
		Autopilot: cfg.Autopilot,
		Logger:    n.logger, Fatal: n.fatal,
		Mux: n.mux, Keys: cfg.Keys, Store: &cfg.Storage, RaftConfig: n.raftConfig(), Transport: n.transport,
		StopRetrying: n.transport.StopRetrying,
		Leader: func() state.ServerID {
			l, _ := n.published.now()
			return l.leader
		},
		Term: func() uint64 {
			l, _ := n.published.now()
			return l.term
		},
		Applied:   n.applied.Load,
		Published: loader(&n.members), Configured: loader(&n.configuration),
		Check:   func(from state.ServerID, at []uint64) *selfcheck.Answer { return n.check.answer(from, at) },
		Level:   n.Level,
		Removed: func(reason string) { n.halt(HaltRemoved, reason) },
		Commit:  n.queue.Do, Connected: n.forwarder.Streams.Count, LastContact: n.forwarder.Streams.Contact,
		Context: n.ctx, Go: n.tasks.Go,
	})
	n.fsm = &fsm{n: n}
	n.tasks.Go(n.ensemble.Serve)
	if cfg.Keys != nil {
		n.tasks.Go(func() { cfg.Keys.Run(n.ctx, func(id state.ServerID) { n.mux.CutServer(uint64(id)) }) })
	}
}

// loader returns a function that returns what p points to; the zero value before it was set.
func loader[T any](p *atomic.Pointer[T]) func() T {
	return func() (value T) {
		if x := p.Load(); x != nil {
			value = *x
		}
		return value
	}
}

// openEnsemble starts raft if this server belongs to an ensemble, and has it bootstrapped otherwise.
func (n *Node) openEnsemble() error {
	id, err := n.cfg.Storage.Identity.Load()
	switch {
	case err != nil:
		return err
	case id == nil && n.cfg.standalone(): // which waits for no others
		return n.bootstrapAndStart()
	case id == nil:
		n.tasks.Go(func() {
			if err := n.bootstrapAndStart(); err != nil && !errors.Is(err, forward.ErrStopped) {
				n.fatal(err)
			}
		})
		return nil
	}
	if err := id.Check(n.cfg.ID); err != nil {
		return err
	}
	if err := n.checkLevel(); err != nil {
		return err
	}
	h, err := n.loadHalt()
	if err != nil {
		return err
	}
	if h != nil {
		n.joinEnsemble(*id)
		n.halt(h.Kind, h.Reason)
		return nil
	}
	if !n.cfg.standalone() {
		n.joinEnsemble(*id)
		if n.check.checkStart(); n.halted.Load() != nil {
			return nil
		}
	}
	return n.startRaft(*id)
}

func (n *Node) bootstrapAndStart() error {
	id, err := n.ensemble.Bootstrap()
	if err != nil {
		return err
	}
	return n.startRaft(id)
}

// dial connects to a server by its id: at the address with which it was added to the running
// ensemble, or at that in this server's own configuration.
func (n *Node) dial(ctx context.Context, addr string) (net.Conn, error) {
	at := n.hostPort(addr)
	if at == "" {
		return nil, fmt.Errorf("server %s is not in this server's configuration, and was not added to the ensemble",
			addr)
	}
	return n.cfg.Dial(ctx, at)
}

// hostPort is where a server is that has this address in raft's configuration; empty: not known here.
func (n *Node) hostPort(addr string) string {
	if members := n.members.Load(); members != nil {
		for id, m := range *members {
			if membership.AddressOf(id) == addr && m.Addr != "" {
				return m.Addr
			}
		}
	}
	for _, s := range n.cfg.Servers {
		if membership.AddressOf(s.ID) == addr {
			return s.Addr
		}
	}
	return ""
}

// verify is Config.Verify for a server's id. A server that is not known here may have been added while this one was
// down, and be the leader that would tell it. Keys on control connections are membership's affair.
func (n *Node) verify(c net.Conn, kind mux.Kind, from uint64) error {
	if from >= mux.NoServer {
		return nil
	}
	if kind != mux.KindControl {
		if err := n.cfg.Keys.CheckKey(c, state.ServerID(from)); err != nil {
			return err
		}
	}
	if n.cfg.Verify == nil {
		return nil
	}
	host, _, _ := net.SplitHostPort(n.hostPort(membership.AddressOf(state.ServerID(from)))) // or empty
	return n.cfg.Verify(c, state.ServerID(from), host)
}

// secure puts TLS on a connection to the server with an address of raft's. Control connections are looked at where
// it is known what they are for (membership).
func (n *Node) secure(ctx context.Context, c net.Conn, kind mux.Kind, addr string) (net.Conn, error) {
	return n.cfg.Keys.Client(ctx, c, membership.ServerOf(addr), kind == mux.KindControl)
}

// Propose sends a command on its way and returns before it is applied. It
// blocks while too much is pending, but not for the ensemble's own commands
// (expiry of sessions, the reaper's, members). An error means that the command
// was not and will not be sent: a *state.LevelError if the ensemble's level does not have the operation.
func (n *Node) Propose(c *state.Command, w forward.Waiter) error {
	if err := c.CheckLevel(n.Level()); err != nil {
		return err
	}
	return n.queue.Add(c, w)
}

// Touch reports sessions whose clients were heard by this server. It never blocks.
func (n *Node) Touch(ids []znode.SessionID) { n.forwarder.Touch(ids) }

// TreeMemory returns how much memory the tree may take on every voter and on this server (0: no limit), and
// how much this server's commands without a result take, in bytes.
func (n *Node) TreeMemory() (limit, pending int64) { return n.forwarder.TreeLimit(), n.queue.Bytes() }

// Ready is closed when the ensemble exists and this server takes part.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Ensemble is the ensemble of which this server is, or will be, a member.
func (n *Node) Ensemble() *membership.Ensemble { return n.ensemble }

// DialHTTP connects to another member's HTTP server, through its peer port.
func (n *Node) DialHTTP(ctx context.Context, to state.ServerID) (net.Conn, error) {
	return n.mux.Dial(ctx, mux.KindHTTP, membership.AddressOf(to), uint64(to))
}

// ListenHTTP returns the listener of what other members dial by DialHTTP. It is called once.
func (n *Node) ListenHTTP() net.Listener { return n.mux.ListenHTTP() }

// alone reports that this server has the only vote.
func (n *Node) alone() bool {
	voters := n.ensemble.Voters()
	return len(voters) == 1 && voters[n.cfg.ID]
}

// now is a monotonic clock, never 0.
func (n *Node) now() int64 { return int64(time.Since(n.start)) + 1 }

// fatal reports once that this server cannot go on.
func (n *Node) fatal(err error) {
	if n.failed.CompareAndSwap(false, true) {
		n.logger.Error("fatal", "error", err)
		n.cfg.Fatal(err)
	}
}

// Close leaves the ensemble in good order: leadership is handed over first.
// Commands without a result are Lost.
func (n *Node) Close() error {
	if err := n.ensemble.Transfer(); err != nil {
		n.logger.Info("handing leadership over failed; the others will elect", "error", err)
	}
	n.queue.Stop()
	n.starting.Lock()
	n.cancel(forward.ErrStopped) // raft has been taken by now, or never will be
	n.starting.Unlock()
	n.transport.StopRetrying() // raft waits for its requests
	_ = n.mux.Close()          // ends what waits for a connection
	var err error
	select {
	case <-n.ready:
		err = n.raft.Shutdown().Error()
	default:
		err = n.transport.Close()
	}
	n.tasks.Wait()
	n.loseCommands()
	return errors.Join(err, n.cfg.Storage.Close())
}
