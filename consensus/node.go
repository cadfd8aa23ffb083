package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/raftlogger"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/znode"
)

// Node is one server's part in the agreement.
type Node struct {
	cfg       Config
	logger    *slog.Logger
	start     time.Time
	mux       *mux.Mux
	transport *transport.Transport
	fsm       *fsm
	forward   *forwarder
	disk      *disk

	ctx    context.Context // ends with the node
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	raft         *raft.Raft // set before ready is closed
	ready        chan struct{}
	touches      chan []znode.SessionID // capacity 1
	wantSnapshot chan struct{}          // capacity 1
	formed       chan storage.Identity  // capacity 1
	forming      sync.Mutex             // one request to form at a time
	streams      streams
	proposals    proposals

	identity atomic.Pointer[storage.Identity]
	members  atomic.Pointer[map[state.ServerID]state.Member] // as applied here
	applied  atomic.Uint64
	contact  atomic.Int64 // now() when a leader was last known to lead; 0 never
	failed   atomic.Bool

	mu      sync.Mutex // protects the fields below
	current *reign
}

// addressOf is a server's address in raft's configuration: its id. Where that
// is in the network every server looks up in its own configuration, so that an
// address may change, and may differ from one server's view to another's.
func addressOf(id state.ServerID) string { return strconv.FormatUint(uint64(id), 10) }

// Open starts a server. It returns at once; an ensemble that has not been
// formed yet is formed in the background. The storage is the node's from now
// on. An error means that the configuration is wrong, or the storage is.
func Open(cfg Config) (*Node, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	n := &Node{
		cfg: cfg, logger: cfg.Logger, start: time.Now(),
		ready:        make(chan struct{}),
		touches:      make(chan []znode.SessionID, 1),
		wantSnapshot: make(chan struct{}, 1),
		formed:       make(chan storage.Identity, 1),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	incarnation, err := nextIncarnation(cfg.Storage.Stable)
	if err != nil {
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	n.forward = newForwarder(state.Origin{Server: cfg.ID, Incarnation: incarnation},
		cfg.MaxPending, cfg.MaxPendingBytes)
	n.disk = newDisk(n)
	n.fsm = &fsm{n: n}
	n.startNetwork()
	id, err := cfg.Storage.Identity.Load()
	switch {
	case err != nil:
	case id == nil && cfg.standalone():
		var fresh storage.Identity
		fresh, err = n.form()
		id = &fresh
	case id != nil && id.Server != cfg.ID:
		err = fmt.Errorf("the data directory belongs to server %d, but this is server %d: "+
			"check dataDir and myid", id.Server, cfg.ID)
	}
	if err == nil && id != nil {
		err = n.join(*id)
	}
	if err != nil {
		n.closeNetwork()
		return nil, fmt.Errorf("opening consensus: %w", err)
	}
	if id == nil {
		n.tasks.Go(n.formAndJoin)
	}
	return n, nil
}

// keyIncarnation is where the last incarnation is kept.
var keyIncarnation = []byte("zk-lite.incarnation")

// nextIncarnation numbers this server's lives, so that commands of an earlier
// one can be told from those of this one. It is the wall clock's milliseconds,
// so that an observer that has lost its disk does not take a number that it had
// before; outlive takes care of a clock that is behind.
func nextIncarnation(s raft.StableStore) (uint64, error) {
	last, err := s.GetUint64(keyIncarnation)
	if err != nil && err.Error() != "not found" {
		return 0, fmt.Errorf("reading the incarnation: %w", err)
	}
	next := max(last+1, uint64(time.Now().UnixMilli()))
	if err := s.SetUint64(keyIncarnation, next); err != nil {
		return 0, fmt.Errorf("writing the incarnation: %w", err)
	}
	return next, nil
}

// outlive begins a later life than all that the log knows of this server. It
// is called by the applying goroutine; the disk is not waited for, since after
// a crash the same would happen again.
func (n *Node) outlive(m *state.Machine) {
	known := m.Incarnation(n.cfg.ID)
	if known <= n.forward.origin.Incarnation {
		return
	}
	n.logger.Warn("the ensemble knows a later life of this server, whose disk or clock was set back",
		"known", known, "this", n.forward.origin.Incarnation)
	n.forward.renumber(known + 1)
	n.tasks.Go(func() {
		if err := n.cfg.Storage.Stable.SetUint64(keyIncarnation, known+1); err != nil {
			n.logger.Error("writing the incarnation failed", "error", err)
		}
	})
}

func (n *Node) startNetwork() {
	listener := n.cfg.Listener
	if listener == nil {
		listener = newDeafListener()
	}
	n.mux = mux.New(mux.Config{
		Listener: listener, Dial: n.dial, Advertise: addressOf(n.cfg.ID), Logger: n.logger,
	})
	n.transport = transport.New(transport.Config{
		Mux: n.mux, LocalID: transport.RaftID(uint64(n.cfg.ID)),
		Log: n.cfg.Storage.Log, Logger: n.logger, RaftLogger: raftlogger.New(n.ctx, n.logger, raftlogger.Net),
		Options: transport.Options{
			NoPush: n.cfg.NoPush, NoOverlap: n.cfg.NoOverlap, NoFailover: n.cfg.NoFailover,
		},
	})
	n.tasks.Go(n.acceptControl)
}

func (n *Node) closeNetwork() {
	n.cancel()
	_ = n.transport.Close()
	_ = n.mux.Close()
	n.tasks.Wait()
}

// dial finds a server by its id: where those said who added it to the running
// ensemble, or in this server's own configuration.
func (n *Node) dial(ctx context.Context, addr string) (net.Conn, error) {
	if members := n.members.Load(); members != nil {
		for id, m := range *members {
			if addressOf(id) == addr && m.Addr != "" {
				return n.cfg.Dial(ctx, m.Addr)
			}
		}
	}
	for _, s := range n.cfg.Servers {
		if addressOf(s.ID) == addr {
			return n.cfg.Dial(ctx, s.Addr)
		}
	}
	return nil, fmt.Errorf("server %s is not in this server's configuration, and was not added to the ensemble", addr)
}

func (n *Node) formAndJoin() {
	id, err := n.form()
	if err == nil {
		err = n.join(id)
	}
	if err != nil && !errors.Is(err, ErrStopped) {
		n.fatal(err)
	}
}

// join starts raft as a member of the ensemble.
func (n *Node) join(id storage.Identity) error {
	n.identity.Store(&id)
	n.mux.SetIdentity(id.Ensemble, uint64(id.Server))
	n.fsm.machine = state.New()
	n.cfg.Handler.BeginApply()
	n.cfg.Handler.StateReplaced(n.fsm.machine)
	n.cfg.Handler.EndApply()
	s := &n.cfg.Storage
	r, err := raft.NewRaft(n.raftConfig(), n.fsm, n.disk.log(), n.disk.stable(), s.Snapshots,
		&candidacy{n.transport, n.disk})
	if err != nil {
		return fmt.Errorf("starting raft: %w", err)
	}
	if !n.takeRaft(r) {
		return errors.Join(ErrStopped, r.Shutdown().Error())
	}
	for _, task := range []func(){
		n.follow, n.rule, n.acceptStreams, n.takeSnapshots, n.exorcise, n.disk.watch, n.promote,
	} {
		n.tasks.Go(task)
	}
	if id.Forming {
		n.tasks.Go(func() { n.finishForming(id) })
	}
	if n.cfg.Publish != nil {
		n.tasks.Go(n.publish)
	}
	if !n.cfg.standalone() {
		n.tasks.Go(func() { n.checkOthers(id) })
	}
	return nil
}

// takeRaft makes raft that of the node, unless Close has begun: that would not stop it.
func (n *Node) takeRaft(r *raft.Raft) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return false
	}
	n.raft = r
	n.transport.Attach(r)
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
		// raft tells a quiet follower how far the log is committed this often. The
		// transport has done so at once (peer, commit push), and sends a request that
		// failed again by itself (peer, hold.go); what is left for raft are its own
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

// rule watches raft's leadership and keeps a reign while this server has it.
func (n *Node) rule() {
	// LeaderCh drops all but the latest news, so raft's state is asked as well.
	look := time.NewTicker(n.cfg.ElectionTimeout / 2)
	defer look.Stop()
	defer func() { n.setReign(nil) }()
	var told uint64 // the term the handler was last told of
	var refused *refusals
	for {
		var ended <-chan struct{}
		r := n.reign()
		if r != nil {
			ended = r.ctx.Done()
		}
		if r == nil || r.ctx.Err() == nil {
			select {
			case <-n.ctx.Done():
				return
			case <-n.raft.LeaderCh():
			case <-look.C:
			case <-ended:
			}
		}
		if n.ctx.Err() != nil {
			return
		}
		term := n.raft.CurrentTerm()
		leads := n.raft.State() == raft.Leader
		switch {
		case !leads:
			if r != nil {
				n.setReign(nil)
			}
			if told != 0 {
				told = 0
				n.cfg.Handler.Lead(0)
			}
			continue
		case r != nil && r.term == term && r.ctx.Err() == nil:
			continue
		case r != nil && r.term == term:
			// An entry was refused although this server still leads, as during a
			// transfer: start afresh, but not in a tight loop.
			select {
			case <-n.ctx.Done():
				return
			case <-time.After(redialMin):
			}
		}
		if told != term {
			told = term
			refused = &refusals{}
			n.proposals.begin()
			n.cfg.Handler.Lead(term)
		}
		next := newReign(n, term, refused)
		n.tasks.Go(next.propose)
		n.setReign(next)
	}
}

func (n *Node) reign() *reign {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// setReign ends the present reign and starts the given one.
func (n *Node) setReign(r *reign) {
	n.mu.Lock()
	old := n.current
	n.current = r
	n.mu.Unlock()
	if old != nil {
		old.abort()
	}
}

// publish tells the ensemble where this server can be reached, once it has
// caught up with what the ensemble thinks.
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
func (n *Node) Propose(c *state.Command, w Waiter) error { return n.forward.add(c, w) }

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

// Transfer hands leadership to another voter, if this server has it and one is
// connected. The last server to stop has nobody, and need not wait for that.
func (n *Node) Transfer() error {
	select {
	case <-n.ready:
	default:
		return nil
	}
	if n.raft.State() != raft.Leader {
		return nil
	}
	if voting, _ := n.streams.count(n.voters()); voting == 0 {
		return nil
	}
	return n.transfer(n.raft.LeadershipTransfer)
}

// transfer starts a transfer of leadership and waits for its end. raft gives it one
// election timeout, but may also forget it, as one that ends while the leader steps
// down (hashicorp/raft issue 696): then nobody would ever answer.
func (n *Node) transfer(start func() raft.Future) error {
	n.transport.StopRetrying()
	ended := make(chan error, 1)
	go func() { ended <- start().Error() }() // not one of tasks, for it may never end
	late := time.NewTimer(max(membershipTimeout, 2*n.cfg.ElectionTimeout))
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return errors.New("raft does not say how the transfer has ended")
	case <-n.ctx.Done():
		return ErrStopped
	}
}

// answerOf waits for raft's answer to what becomes an entry. raft gives none to entries that wait
// for the state machine when it shuts down, so nobody for whom Close waits may wait for it alone.
func (n *Node) answerOf(f raft.Future) error {
	answer := make(chan error, 1)
	go func() { answer <- f.Error() }() // not one of tasks
	select {
	case err := <-answer:
		return err
	case <-n.ctx.Done():
		return raft.ErrRaftShutdown
	}
}

// Close leaves the ensemble in good order: leadership is handed over first.
// Commands without a result are Lost.
func (n *Node) Close() error {
	if err := n.Transfer(); err != nil {
		n.logger.Warn("handing leadership over failed; the others will elect", "error", err)
	}
	n.forward.stop()
	n.mu.Lock()
	n.cancel() // raft has been taken by now, or never will be
	n.mu.Unlock()
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
	for _, w := range n.forward.skipTo(1<<64 - 1) {
		w.Lost()
	}
	n.cfg.Handler.EndApply()
	return errors.Join(err, n.cfg.Storage.Close())
}

// deafListener stands in for a peer port that a lone server does not have.
type deafListener struct {
	closed chan struct{}
	once   sync.Once
}

func newDeafListener() *deafListener { return &deafListener{closed: make(chan struct{})} }

func (l *deafListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l *deafListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *deafListener) Addr() net.Addr { return &net.TCPAddr{} }
