package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/founding"
	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/raftlogger"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/migration/seed"
	"github.com/zk-lite/zk-lite/znode"
)

// Node is one server's part in the agreement.
type Node struct {
	cfg    Config
	logger *slog.Logger

	ctx    context.Context // ends with the node; its cause is ErrStopped
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup

	mux        *mux.Mux
	transport  *transport.Transport
	disk       *storage.Monitor
	queue      *forward.Queue
	streams    forward.Streams
	forwarder  *forward.Forwarder
	ensemble   *membership.Ensemble
	founder    *founding.Founder
	fsm        *fsm
	check      *selfcheck.Checker
	leadership *leadership.Publisher
	applied    membership.Applied
	logged     atomic.Pointer[map[state.ServerID]string] // see noteLogged

	starting sync.Mutex // Close comes before raft's start, or after it
	raft     *raft.Raft // set before ready is closed
	ready    chan struct{}

	commits, applies histogram.Histogram
	snapshots        *snapshots

	failed atomic.Bool
	halted atomic.Pointer[Halt] // nil: it is not
}

// Open starts a server. It returns at once; an ensemble that does not exist
// yet is founded in the background. The storage is the node's from now
// on. An error means that the configuration is wrong, or the storage is.
func Open(cfg Config) (*Node, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	n := &Node{
		cfg: cfg, logger: cfg.Logger,
		ready:      make(chan struct{}),
		leadership: leadership.New(),
	}
	n.snapshots = &snapshots{n: n, wanted: make(chan struct{}, 1)}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	lastLife, incarnation, err := nextIncarnation(cfg.Storage.Stable)
	if err != nil {
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	if at, ok := cfg.Storage.SnapshotTime(); ok {
		n.snapshots.last.Store(at.Unix())
	}
	imported, err := seed.Load(cfg.Storage.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	n.assemble(lastLife, incarnation, imported)
	if err := n.openEnsemble(); err != nil {
		n.cancel(forward.ErrStopped)
		err = errors.Join(err, n.transport.Close(), n.mux.Close())
		n.tasks.Wait()
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	return n, nil
}

// assemble makes the node's parts.
func (n *Node) assemble(lastLife, incarnation uint64, imported *seed.Seed) {
	cfg := &n.cfg
	listener := cfg.Listener
	if listener == nil {
		listener = mux.NoListener()
	}
	others := othersOf(n)
	n.mux = mux.New(mux.Config{
		Listener: cfg.Keys.Listener(listener), Dial: others.dial, Guard: others,
		Advertise: membership.AddressOf(cfg.ID), Logger: n.logger,
	})
	self := transport.RaftID(uint64(cfg.ID))
	checks := selfcheck.Config{
		Self: cfg.ID, LastLife: lastLife, Interval: cfg.CheckInterval, Store: cfg.Storage.History,
		Node: checkedNode{n}, Logger: n.logger,
	}
	if cfg.standalone() {
		checks.Interval = 0
	}
	n.check = selfcheck.New(checks)
	n.transport = transport.New(transport.Config{
		Mux: n.mux, LocalID: self, Log: cfg.Storage.Log, Dir: cfg.Storage.Dir, Logger: n.logger,
		RaftLogger:  raftlogger.New(n.ctx, n.logger, raftlogger.Net),
		PersistTerm: func() { n.disk.PersistTerm() },
		Options: transport.Options{
			NoPush: cfg.NoPush, NoOverlap: cfg.NoOverlap, NoFailover: cfg.NoFailover, Silence: cfg.ElectionTimeout,
		},
	})
	n.disk = storage.NewMonitor(storage.MonitorConfig{
		Self: self, Store: &cfg.Storage, ElectionTimeout: cfg.ElectionTimeout, Logger: n.logger, Stopping: n.ctx,
		Applied: n.check.Record, Fatal: n.fatal, Forked: n.check.Truncated,
	})
	n.queue = forward.NewQueue(state.Origin{Server: cfg.ID, Incarnation: incarnation},
		cfg.MaxPending, cfg.MaxPendingBytes)
	digest := ""
	if imported != nil {
		digest = imported.Digest()
	}
	n.ensemble = membership.New(membership.Config{
		Self: cfg.ID, Servers: cfg.Servers, Standalone: cfg.standalone(), ElectionTimeout: cfg.ElectionTimeout,
		Autopilot: cfg.Autopilot, Logger: n.logger,
		Mux: n.mux, Keys: cfg.Keys, Store: &cfg.Storage, Disk: n.disk,
		Transport: n.transport, Leadership: n.leadership, Applied: &n.applied, Queue: n.queue, Streams: &n.streams,
		Check: n.check, Seed: digest,
		Found:   func(conn *mux.Conn, req *membership.Request) error { return n.founder.Accept(conn, req) },
		Removed: func(reason string) { n.halt(selfcheck.Removed, reason) },
		Context: n.ctx, Tasks: &n.tasks,
	})
	n.check.Attach(n.ensemble)
	n.founder = founding.New(founding.Config{
		Self: cfg.ID, Servers: cfg.Servers, Standalone: cfg.standalone(), ElectionTimeout: cfg.ElectionTimeout,
		Logger: n.logger, Keys: cfg.Keys, Store: &cfg.Storage,
		RaftConfig: n.raftConfig(), Transport: n.transport, Ensemble: n.ensemble, Seed: imported,
		Fatal: n.fatal, Context: n.ctx, Tasks: &n.tasks,
	})
	n.forwarder = forward.New(forward.Config{
		Self: cfg.ID, ElectionTimeout: cfg.ElectionTimeout, Logger: n.logger, TreeLimit: cfg.TreeLimit,
		Queue: n.queue, Streams: &n.streams, Leadership: n.leadership, Ensemble: n.ensemble, Network: streams{n.mux},
		Touched: cfg.Handler.Touched, Tasks: &n.tasks,
	})
	n.fsm = &fsm{n: n}
	n.tasks.Go(n.ensemble.Serve)
	if cfg.Keys != nil {
		n.tasks.Go(func() { cfg.Keys.Run(n.ctx, func(id state.ServerID) { n.mux.CutServer(uint64(id)) }) })
	}
}

// openEnsemble starts raft if this server belongs to an ensemble, and founds or joins one otherwise.
func (n *Node) openEnsemble() error {
	id, err := n.cfg.Storage.Identity.Load()
	switch {
	case err != nil:
		return err
	case id == nil && n.cfg.standalone(): // which waits for no others
		return n.foundAndStart()
	case id == nil:
		n.tasks.Go(func() {
			if err := n.foundAndStart(); err != nil && !errors.Is(err, forward.ErrStopped) {
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
		if n.check.CheckStart(); n.halted.Load() != nil {
			return nil
		}
	}
	return n.startRaft(*id)
}

// foundAndStart founds the ensemble or joins it, and starts raft.
func (n *Node) foundAndStart() error {
	id, err := n.founder.Await()
	if err != nil {
		return err
	}
	return n.startRaft(id)
}

// Propose sends a command on its way and returns before it is applied. It blocks while too much is pending
// (forward.Queue.Add). An error means that the command was not and will not be sent: forward.ErrStopped,
// forward.ErrOverdue, or a *state.LevelError if the ensemble's level does not have the operation.
func (n *Node) Propose(c *state.Command, w forward.Waiter, from forward.From) error {
	if err := c.CheckLevel(n.applied.Level()); err != nil {
		return err
	}
	return n.queue.Add(c, w, from)
}

// Touch reports sessions whose clients were heard by this server. It never blocks.
func (n *Node) Touch(ids []znode.SessionID) { n.forwarder.Touch(ids) }

// TreeMemory returns how much memory the tree may take on every voter and on this server (0: no limit), and
// how much this server's commands without a result take, in bytes.
func (n *Node) TreeMemory() (limit, pending int64) { return n.forwarder.TreeLimit(), n.queue.Bytes() }

// Ready is closed when the ensemble exists and this server takes part.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// started reports whether raft runs, or has run.
func (n *Node) started() bool {
	select {
	case <-n.ready:
		return true
	default:
		return false
	}
}

// Ensemble is the ensemble of which this server is, or will be, a member.
func (n *Node) Ensemble() *membership.Ensemble { return n.ensemble }

// DialHTTP connects to another member's HTTP server, through its peer port.
func (n *Node) DialHTTP(ctx context.Context, to state.ServerID) (net.Conn, error) {
	return n.mux.Dial(ctx, mux.KindHTTP, membership.AddressOf(to), uint64(to))
}

// ListenHTTP returns the listener of what other members dial by DialHTTP. It is called once.
func (n *Node) ListenHTTP() net.Listener { return n.mux.ListenHTTP() }

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
	if n.started() {
		err = n.raft.Shutdown().Error()
	} else {
		err = n.transport.Close()
	}
	n.tasks.Wait()
	n.loseCommands()
	return errors.Join(err, n.cfg.Storage.Close())
}
