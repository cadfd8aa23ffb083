package transport

import (
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/consensus/transport/appendrpc"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/repeats"
)

const (
	// DefaultTimeout bounds one RPC of raft's. It covers the other server's disk sync; for a
	// snapshot raft scales it with the size.
	DefaultTimeout = 5 * time.Second
	// maxPool is how many idle connections raft keeps to each server: one for votes, one for a
	// transfer of leadership.
	maxPool = 2
)

// Options switches the three ideas off, each by itself. The zero value has all of them on.
type Options struct {
	NoPush     bool // followers learn of a commit by raft's own means (push.go)
	NoOverlap  bool // the leader's disk sync comes before replication (overlap.go)
	NoFailover bool // a dead leader is noticed by raft's timeouts only (failover.go)

	// StallLimit is how long the oldest record of the local log may wait for the disk before this
	// server stops acting as leader: then every AppendEntries fails, the lease runs out, and the
	// followers elect. 0 means DefaultStallLimit, negative means no limit.
	StallLimit time.Duration
	// Silence is how long a follower must not have heard from its leader before it suspects it. 0
	// leaves silent leaders to raft's timers.
	Silence time.Duration
}

// Config configures a Transport.
type Config struct {
	// Mux carries the connections. Required. The transport takes those of raft's kinds.
	Mux *mux.Mux
	// LocalID is this server's id in raft's configuration. Required.
	LocalID raft.ServerID
	// Log is raft's log. Required. If it is an AsyncLog, its syncs are overlapped.
	Log raft.LogStore
	// PersistTerm returns when raft's term and vote are on the disk. It is called before any message of raft's
	// in its term leaves this server. Nil means that they always are.
	PersistTerm func()
	// Dir has the snapshot that is being received. Empty means the system's directory of temporary files.
	Dir string
	// Timeout replaces DefaultTimeout when it is positive.
	Timeout time.Duration
	// RaftLogger gets the log lines of raft.NetworkTransport. Nil means none.
	RaftLogger hclog.Logger
	// Logger gets those of this package. Nil means none.
	Logger *slog.Logger

	Options
}

// Transport is the raft.Transport that NewRaft gets; see the package comment. Until Attach it
// behaves like a raft.NetworkTransport without heartbeat handler and pipeline.
type Transport struct {
	*raft.NetworkTransport
	raftLink

	// set at construction
	mux       *mux.Mux
	timeout   time.Duration
	appends   *appendrpc.Client
	push      *pusher   // nil: switched off
	overlap   *overlap  // nil: switched off
	failover  *detector // nil: switched off
	retry     *retrier
	snapshots *snapshotGuard
	incoming  *incoming
	pace      pacer // of all snapshots that are sent
	receivers snapshotReceivers
	repeats   repeats.Filter
	leaderLog atomic.Uint64 // see LeaderLog
}

// New starts a transport over the mux. Close, which raft calls at its shutdown, stops it.
func New(cfg Config) *Transport {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.PersistTerm == nil {
		cfg.PersistTerm = func() {}
	}
	if cfg.RaftLogger == nil {
		cfg.RaftLogger = hclog.NewNullLogger()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: streamLayer{cfg.Mux}, MaxPool: maxPool, MaxRPCsInFlight: 1,
			Timeout: cfg.Timeout, Logger: cfg.RaftLogger,
		}),
		raftLink: raftLink{
			logger: cfg.Logger, persistTerm: cfg.PersistTerm,
			rpcs: make(chan raft.RPC), done: make(chan struct{}),
		},
		mux: cfg.Mux, timeout: cfg.Timeout,
		appends: appendrpc.NewClient(appendDialer(cfg.Mux, cfg.Timeout), cfg.Timeout),
	}
	t.retry = newRetrier(&t.raftLink)
	t.snapshots = newSnapshotGuard(&t.raftLink, cfg.Log)
	t.incoming = newIncoming(t, cfg.Dir)
	if !cfg.NoPush {
		t.push = newPusher(&t.raftLink, t.appends.Notify)
	}
	if log, ok := cfg.Log.(AsyncLog); ok && !cfg.NoOverlap {
		t.overlap = newOverlap(&t.raftLink, log, cfg.StallLimit)
	}
	if cfg.NoFailover {
		cfg.Mux.SetRaft(t.serverAt, nil)
	} else {
		t.failover = newDetector(&t.raftLink, &cfg, t.NetworkTransport)
		cfg.Mux.SetRaft(t.serverAt, t.failover.look)
		t.run(t.failover.loop)
	}
	t.run(t.pump)
	t.run(func() { t.accept(mux.KindAppend, t.serveAppends) })
	t.run(func() { t.accept(mux.KindSnapshot, t.incoming.serve) })
	return t
}

// Attach gives the transport the raft that was made with it. Until then nothing is pushed,
// overlapped or injected.
func (t *Transport) Attach(r *raft.Raft) { t.raft.Store(r) }

// Close stops the goroutines, ends the raft connections of both directions and waits. raft calls it
// at the end of its shutdown; calling it again does nothing.
func (t *Transport) Close() error {
	t.stop()
	err := t.NetworkTransport.Close()
	t.wg.Wait()
	t.incoming.close()
	return err
}

// Committed reports that this server's state machine has applied everything up to index.
// FSM.ApplyBatch calls it at its end, on every server. It waits for nothing but a short critical
// section.
func (t *Transport) Committed(index uint64) {
	if t.push != nil {
		t.push.committed(index)
	}
}

// SetPeers ends the pushers of servers that are no longer in the configuration. It is called when
// a configuration entry is applied, and after a snapshot was installed. New servers need no call.
func (t *Transport) SetPeers(servers []raft.Server) {
	if t.push != nil {
		t.push.keep(servers)
	}
}

// StopRetrying makes raft see every failure at once for the rest of the current term, those included
// that are being retried. It must come before a transfer of leadership and before raft's shutdown,
// because both wait for the goroutines that retry.
func (t *Transport) StopRetrying() { t.retry.stopRetrying() }

// CatchingUp reports whether this server leads and a follower to which it has sent a snapshot, or is
// sending one, needs the log after it.
func (t *Transport) CatchingUp() bool {
	r := t.raft.Load()
	return r != nil && r.State() == raft.Leader && t.receivers.any(r.CurrentTerm())
}

// BeginSnapshot is called by the state machine when raft wants a snapshot of it. It returns false
// while one of the leader's is installed: then the state machine must make none. After true,
// EndSnapshot must follow.
func (t *Transport) BeginSnapshot() bool { return t.snapshots.tryAcquire() }

// EndSnapshot is called when raft releases the snapshot for which BeginSnapshot returned true.
func (t *Transport) EndSnapshot() { t.snapshots.release() }

// SnapshotUnderWay reports whether a snapshot is being written or installed.
func (t *Transport) SnapshotUnderWay() bool { return len(t.snapshots.token) > 0 }

// Stats reads the counters. They are read one by one, not at one instant.
func (t *Transport) Stats() Stats { return t.count.stats() }

// streamLayer is the mux as raft.NetworkTransport wants to see it.
type streamLayer struct{ m *mux.Mux }

// Accept waits for the next inbound raft connection.
func (l streamLayer) Accept() (net.Conn, error) {
	c, err := l.m.Accept(mux.KindRaft)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the raft connections of both directions, those being dialled included.
func (l streamLayer) Close() error {
	l.m.CloseRaft()
	return nil
}

// Addr is the advertised address, which raft takes as its own.
func (l streamLayer) Addr() net.Addr { return l.m.Addr() }

// Dial makes a connection for the NetworkTransport.
func (l streamLayer) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	c, err := l.m.DialMember(mux.KindRaft, string(addr), timeout)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Stats counts what a Transport has done since it was made.
type Stats struct {
	Entries    int64 // AppendEntries sent by raft with entries
	Empty      int64 // and without, to send the commit index
	Heartbeats int64 // and as heartbeats

	Pushes       int64 // commit indexes pushed to a follower
	PushSkips    int64 // pushes left out because raft was about to send the same
	PushFailures int64 // pushes that could not be sent

	Async   int64 // batches from which StoreLogs was allowed to return early
	Delayed int64 // answers to a leader that may have waited for this disk
	Stalls  int64 // RPCs not sent because the disk had stalled

	Stale int64 // snapshots not installed, because this server held what they hold

	Probes    int64 // dials to a leader after a connection ended
	Deaths    int64 // findings that the leader is dead or silent
	Asks      int64 // pre-votes asked for on such a finding
	Grants    int64 // pre-votes granted to another server that found the same
	Elections int64 // elections started on such a finding
}

type counters struct {
	entries, empty, heartbeats      atomic.Int64
	pushes, pushSkips, pushFailures atomic.Int64
	async, delayed, stalls          atomic.Int64
	stale                           atomic.Int64
	probes, deaths                  atomic.Int64
	asks, grants, elections         atomic.Int64
}

func (c *counters) appendEntries(entries int, heartbeat bool) {
	switch {
	case heartbeat:
		c.heartbeats.Add(1)
	case entries == 0:
		c.empty.Add(1)
	default:
		c.entries.Add(1)
	}
}

func (c *counters) stats() Stats {
	return Stats{
		Entries:      c.entries.Load(),
		Empty:        c.empty.Load(),
		Heartbeats:   c.heartbeats.Load(),
		Pushes:       c.pushes.Load(),
		PushSkips:    c.pushSkips.Load(),
		PushFailures: c.pushFailures.Load(),
		Async:        c.async.Load(),
		Delayed:      c.delayed.Load(),
		Stalls:       c.stalls.Load(),
		Stale:        c.stale.Load(),
		Probes:       c.probes.Load(),
		Deaths:       c.deaths.Load(),
		Asks:         c.asks.Load(),
		Grants:       c.grants.Load(),
		Elections:    c.elections.Load(),
	}
}
