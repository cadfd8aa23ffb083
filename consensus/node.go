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
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/raftlogger"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
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
	published publisher

	starting     sync.Mutex // Close comes before raft's start, or after it
	raft         *raft.Raft // set before ready is closed
	ready        chan struct{}
	wantSnapshot chan struct{} // capacity 1

	members atomic.Pointer[map[state.ServerID]state.Member] // as applied here
	applied atomic.Uint64
	failed  atomic.Bool
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
	}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	incarnation, err := nextIncarnation(cfg.Storage.Stable)
	if err != nil {
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	n.assemble(incarnation)
	if err := n.openEnsemble(); err != nil {
		n.cancel(ErrStopped)
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
		listener = newNoListener()
	}
	n.mux = mux.New(mux.Config{
		Listener: listener, Dial: n.dial, Advertise: membership.AddressOf(cfg.ID), Logger: n.logger,
	})
	n.transport = transport.New(transport.Config{
		Mux: n.mux, LocalID: transport.RaftID(uint64(cfg.ID)), Log: cfg.Storage.Log, Logger: n.logger,
		RaftLogger: raftlogger.New(n.ctx, n.logger, raftlogger.Net),
		Options: transport.Options{
			NoPush: cfg.NoPush, NoOverlap: cfg.NoOverlap, NoFailover: cfg.NoFailover,
		},
	})
	n.disk = storage.NewMonitor(storage.MonitorConfig{
		Store: &cfg.Storage, ElectionTimeout: cfg.ElectionTimeout, Logger: n.logger,
		Now: n.now, Fatal: n.fatal, Stopping: n.ctx,
	})
	n.queue = forward.NewQueue(state.Origin{Server: cfg.ID, Incarnation: incarnation},
		cfg.MaxPending, cfg.MaxPendingBytes)
	n.forwarder = forward.New(forward.Config{
		Self: cfg.ID, ElectionTimeout: cfg.ElectionTimeout, Logger: n.logger, Queue: n.queue, Now: n.now,
		Leader: func() (state.ServerID, <-chan struct{}) {
			l, changed := n.published.now()
			return l.leader, changed
		},
		Leads: n.leads, Touched: cfg.Handler.Touched,
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
		Self: cfg.ID, Servers: cfg.Servers, ElectionTimeout: cfg.ElectionTimeout,
		Logger: n.logger, Fatal: n.fatal,
		Mux: n.mux, Store: &cfg.Storage, RaftConfig: n.raftConfig(), Transport: n.transport, StopRetrying: n.transport.StopRetrying,
		Leader: func() state.ServerID {
			l, _ := n.published.now()
			return l.leader
		},
		Applied: n.applied.Load,
		Published: func() map[state.ServerID]state.Member {
			if p := n.members.Load(); p != nil {
				return *p
			}
			return nil
		},
		Commit: n.queue.Do, Connected: n.forwarder.Streams.Count, LastContact: n.forwarder.Streams.Contact,
		Context: n.ctx, Go: n.tasks.Go,
	})
	n.fsm = &fsm{n: n}
	n.tasks.Go(n.ensemble.Serve)
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
			if err := n.bootstrapAndStart(); err != nil && !errors.Is(err, ErrStopped) {
				n.fatal(err)
			}
		})
		return nil
	case id.Server != n.cfg.ID:
		return fmt.Errorf("the data directory belongs to server %d, but this is server %d: "+
			"check dataDir and myid", id.Server, n.cfg.ID)
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

// keyIncarnation is where the last incarnation is kept.
var keyIncarnation = []byte("zk-lite.incarnation")

// nextIncarnation numbers this server's starts, so that commands of an earlier
// one differ from those of this one. It is the wall clock's milliseconds,
// so that an observer that has lost its disk does not take a number that it had
// before; advanceIncarnation takes care of a clock that is behind.
func nextIncarnation(s raft.StableStore) (uint64, error) {
	last, err := s.GetUint64(keyIncarnation)
	if err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return 0, fmt.Errorf("reading the incarnation: %w", err)
	}
	next := max(last+1, uint64(time.Now().UnixMilli()))
	if err := s.SetUint64(keyIncarnation, next); err != nil {
		return 0, fmt.Errorf("writing the incarnation: %w", err)
	}
	return next, nil
}

// advanceIncarnation begins a later incarnation than all of this server that the log contains. It
// is called by the applying goroutine; the disk is not waited for, since after
// a crash the same would happen again.
func (n *Node) advanceIncarnation(m *state.Machine) {
	known := m.Incarnation(n.cfg.ID)
	if known <= n.queue.OriginApplying().Incarnation {
		return
	}
	n.logger.Warn("the log contains a newer incarnation of this server; its disk or clock was reset",
		"known", known, "this", n.queue.OriginApplying().Incarnation)
	n.queue.Renumber(known + 1)
	n.tasks.Go(func() {
		if err := n.cfg.Storage.Stable.SetUint64(keyIncarnation, known+1); err != nil {
			n.logger.Error("writing the incarnation failed", "error", err)
		}
	})
}

// dial connects to a server by its id: at the address with which it was added to the running
// ensemble, or at that in this server's own configuration.
func (n *Node) dial(ctx context.Context, addr string) (net.Conn, error) {
	if members := n.members.Load(); members != nil {
		for id, m := range *members {
			if membership.AddressOf(id) == addr && m.Addr != "" {
				return n.cfg.Dial(ctx, m.Addr)
			}
		}
	}
	for _, s := range n.cfg.Servers {
		if membership.AddressOf(s.ID) == addr {
			return n.cfg.Dial(ctx, s.Addr)
		}
	}
	return nil, fmt.Errorf("server %s is not in this server's configuration, and was not added to the ensemble", addr)
}

// electionGate is the transport as raft sees it: without the others' pre-votes no server campaigns.
type electionGate struct {
	*transport.Transport
	mayCampaign func() bool
}

// errMayNotCampaign is why a server does not campaign.
var errMayNotCampaign = errors.New("this server's log has refused a write; it does not campaign")

// RequestPreVote implements raft.WithPreVote.
func (g *electionGate) RequestPreVote(id raft.ServerID, target raft.ServerAddress,
	req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	if !g.mayCampaign() {
		return errMayNotCampaign
	}
	return g.Transport.RequestPreVote(id, target, req, resp)
}

// startRaft starts raft as a member of the ensemble.
func (n *Node) startRaft(id storage.Identity) error {
	n.ensemble.Join(id)
	n.mux.SetIdentity(id.Ensemble, uint64(id.Server))
	n.fsm.machine = state.New()
	n.cfg.Handler.BeginApply()
	n.cfg.Handler.StateReplaced(n.fsm.machine)
	n.cfg.Handler.EndApply()
	r, err := raft.NewRaft(n.raftConfig(), n.fsm, n.disk.Log(), n.disk.Stable(), n.cfg.Storage.Snapshots,
		&electionGate{n.transport, n.disk.MayCampaign})
	if err != nil {
		return fmt.Errorf("starting raft: %w", err)
	}
	if !n.takeRaft(r) {
		return errors.Join(ErrStopped, r.Shutdown().Error())
	}
	for _, task := range []func(){n.watchLeadership, n.forwarder.Accept, n.takeSnapshots} {
		n.tasks.Go(task)
	}
	n.tasks.Go(func() { n.forwarder.Run(n.ctx) })
	if n.cfg.Publish != nil {
		n.tasks.Go(n.publish)
	}
	n.ensemble.Start(r)
	return nil
}

// takeRaft makes raft that of the node, unless Close has begun: that would not stop it.
func (n *Node) takeRaft(r *raft.Raft) bool {
	n.starting.Lock()
	defer n.starting.Unlock()
	if n.ctx.Err() != nil {
		return false
	}
	n.raft = r
	n.transport.Attach(r)
	n.disk.Started()
	close(n.ready)
	return true
}

func (n *Node) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = transport.RaftID(uint64(n.cfg.ID))
	timeout := n.cfg.ElectionTimeout
	if n.cfg.standalone() {
		timeout = min(timeout, loneElection)
	}
	c.HeartbeatTimeout, c.ElectionTimeout = timeout, timeout
	// No read relies on the lease; a longer one spares an overloaded leader.
	c.LeaderLeaseTimeout = timeout * 3 / 4
	if !n.cfg.NoPush {
		// raft sends a quiet follower how far the log is committed this often. The
		// transport has done so at once (push.go), and repeats a request that
		// failed (retry.go); what is left for raft are its own
		// entries, which no client waits for, and a push that was lost with its
		// connection. Idle servers have less to do the rarer it is.
		c.CommitTimeout = max(c.CommitTimeout, timeout/2)
	}
	c.TrailingLogs = n.cfg.TrailingLogs
	c.SnapshotThreshold = 1 << 17 // takeSnapshots asks earlier
	c.NoLegacyTelemetry = true
	c.Logger = raftlogger.New(n.ctx, n.logger, "raft")
	return c
}

// publish has the ensemble note where this server can be reached, once it has
// caught up with what the ensemble has noted.
func (n *Node) publish() {
	_ = n.Propose(&state.Command{Op: state.OpMember, Member: *n.cfg.Publish}, ignore{})
}

type ignore struct{}

func (ignore) Applied(*state.Result) {}
func (ignore) Lost()                 {}

// Propose sends a command on its way and returns before it is applied. It
// blocks while too much is pending, but not for the ensemble's own commands
// (expiry of sessions, the reaper's, members). An error means that the command
// was not and will not be sent.
func (n *Node) Propose(c *state.Command, w Waiter) error { return n.queue.Add(c, w) }

// Touch reports sessions whose clients were heard by this server. It never blocks.
func (n *Node) Touch(ids []znode.SessionID) { n.forwarder.Touch(ids) }

// Ready is closed when the ensemble exists and this server takes part.
func (n *Node) Ready() <-chan struct{} { return n.ready }

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
	if err := n.Transfer(); err != nil {
		n.logger.Warn("handing leadership over failed; the others will elect", "error", err)
	}
	n.queue.Stop()
	n.starting.Lock()
	n.cancel(ErrStopped) // raft has been taken by now, or never will be
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
	n.cfg.Handler.BeginApply()
	for _, w := range n.queue.SkipTo(1<<64 - 1) {
		w.Lost()
	}
	n.cfg.Handler.EndApply()
	return errors.Join(err, n.cfg.Storage.Close())
}
