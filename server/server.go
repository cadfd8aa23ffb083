package server

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/auth"
	"github.com/zk-lite/zk-lite/server/backup"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// Consensus is what the server needs of package consensus.
type Consensus interface {
	// Propose sends a command on its way and returns before it is applied. It
	// blocks while too much is pending, except for the ensemble's own commands
	// (expiry, the reaper's): the clock that proposes those must not stop. An
	// error means that the command was not and will not be sent.
	Propose(c *state.Command, w forward.Waiter, from forward.From) error
	// Touch reports sessions whose clients sent something.
	Touch(ids []znode.SessionID)
	// Status returns this server's place in the ensemble.
	Status() consensus.Status
	// TreeMemory returns how much memory the state may take (0: no limit), and how
	// much the commands take that wait for their result, in bytes.
	TreeMemory() (limit, pending int64)
}

// Ensemble is what Drain asks of *membership.Ensemble.
type Ensemble interface {
	CheckStop(ctx context.Context) error
	TransferTo(ctx context.Context, id state.ServerID) error
}

// Config is what a Server is made of. Zero durations are not allowed.
type Config struct {
	ID                state.ServerID
	Tick              time.Duration // of heartbeats to the leader and of expiry
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration
	// Grace bounds how long clients are kept while no leader is known to have a
	// majority. A client with a short session goes earlier: after half its
	// timeout, so that it learns of its disconnection before the rest of the
	// ensemble expires it.
	Grace         time.Duration
	ExtendedTypes bool // allow TTL znodes
	EnforceQuota  bool // hard quotas refuse
	ReadOnly      bool // serve reads without a majority; see ReadOnlyMode
	// CompatiblePasswords gives sessions of the ZooKeeper protocol the passwords that a ZooKeeper server would. A
	// client that knows the id of such a session can take it over.
	CompatiblePasswords bool
	// LocalSessions makes new sessions of the ZooKeeper protocol local; UpgradeLocalSessions lets them create
	// ephemeral znodes, with which they become sessions like any other.
	LocalSessions        bool
	UpgradeLocalSessions bool
	Auth                 *auth.Authenticator // nil: ZooKeeper's defaults, and no super user
	WatchLimit           int                 // paths one connection may watch; 0: watch.DefaultLimit
	WatchBytes           int64               // that all watches may take; 0: watch.DefaultBytes
	WatchFanout          int                 // watchers of a path that are many; 0: watch.DefaultFanout
	Rates                Rates               // of each client
	ChangesWindow        int64               // bytes of changes that are kept; 0: changes.DefaultWindow
	SlowRequest          time.Duration       // from which on a request is slow; 0: none is
	Reap                 ReapConfig
	Logger               *slog.Logger
}

// clamp returns the session timeout for one that a client asks for.
func (c *Config) clamp(d time.Duration) time.Duration {
	d = min(max(d, c.MinSessionTimeout), c.MaxSessionTimeout)
	return d.Truncate(time.Millisecond)
}

// patience is how long a client with this session timeout is kept without a leader.
func (c *Config) patience(timeout time.Duration) time.Duration { return min(timeout/2, c.Grace) }

// Server is one server of the ensemble, as the packages that serve clients see it.
type Server struct {
	cfg       Config
	flags     state.Flags
	logger    *slog.Logger
	started   time.Time
	consensus Consensus
	ensemble  Ensemble
	handler   handler
	admission admission
	// Source is the ensemble that is mirrored; it is idle while none is.
	Source   *Source
	ReadOnly *ReadOnlyMode
	Callers  *Callers

	view     viewLock // protects current, what it leads to, and the record of changes
	current  View
	watches  *watch.Manager
	changes  *changes.Feed
	restorer *backup.Restorer
	slow     *insight.SlowLog
	usage    insight.Usage
	expired  *insight.Expirations

	conns       *connections
	ends        sessionEnds
	sessions    *session.Tracker
	local       *LocalSessions
	catchUp     catchingUp
	fresh       Freshness
	progress    progress
	nextShard   atomic.Uint32
	nextSession atomic.Int64
	draining    atomic.Bool

	stopping atomic.Bool
	stop     chan struct{}
	done     sync.WaitGroup
}

// New returns a server that accepts no requests before Start. Its state is the machine that
// consensus hands over with StateReplaced.
func New(cfg Config) *Server {
	if cfg.Auth == nil {
		cfg.Auth = auth.New(auth.Config{})
	}
	s := &Server{
		cfg: cfg, logger: cfg.Logger, started: time.Now(),
		watches:  watch.New(watch.Limit(cfg.WatchLimit), watch.Bytes(cfg.WatchBytes), watch.Fanout(cfg.WatchFanout)),
		conns:    newConnections(),
		Callers:  newCallers(cfg.Rates),
		ends:     sessionEnds{waiting: map[znode.SessionID]map[*sessionEnd]struct{}{}},
		sessions: session.NewTracker(cfg.Tick),
		stop:     make(chan struct{}),
	}
	if cfg.ExtendedTypes {
		s.flags |= state.FlagExtendedTypes
	}
	if cfg.EnforceQuota {
		s.flags |= state.FlagEnforceQuota
	}
	s.admission.srv, s.catchUp.srv, s.fresh.srv = s, s, s
	s.Source, s.local = newSource(s), newLocalSessions(s)
	s.handler.srv = s
	s.current = View{machine: state.New(), watches: s.watches, local: s.local}
	s.changes = changes.NewFeed(func(visit func(znode.Zxid)) {
		s.View(func(v *View) { visit(v.Zxid()) })
	}, s.stop, cmp.Or(cfg.ChangesWindow, changes.DefaultWindow))
	s.current.changes, s.current.fresh = s.changes, &s.fresh
	s.restorer = backup.NewRestorer(s, cfg.Logger)
	s.expired = insight.NewExpirations(cfg.ID, cfg.Logger)
	s.slow = insight.NewSlowLog(insight.SlowConfig{Threshold: cfg.SlowRequest, Logger: cfg.Logger, Server: s})
	// ZooKeeper's numbering: the server in the top byte, then the time, then a
	// counter, so that no server ever gives an id twice.
	millis := uint64(time.Now().UnixMilli())
	s.nextSession.Store(int64(uint64(cfg.ID)<<56 | millis<<24>>8))
	s.ReadOnly = &ReadOnlyMode{srv: s}
	return s
}

// Handler is the server's side towards consensus.
func (s *Server) Handler() consensus.Handler { return &s.handler }

// Start begins to serve with the given consensus. Stop ends it.
func (s *Server) Start(c Consensus, e Ensemble) {
	s.consensus, s.ensemble = c, e
	s.done.Go(s.housekeeping)
	s.done.Go(newReaper(s).run)
}

// Stop disconnects every client and ends the server's goroutines. Only the first
// call has an effect.
func (s *Server) Stop() {
	if !s.stopping.CompareAndSwap(false, true) {
		return
	}
	close(s.stop)
	s.conns.disconnectAll(ReasonStopping)
	s.view.Lock()
	s.Source.loseAll()
	s.view.Unlock()
	s.done.Wait()
}

// Subscribe starts a stream of changes; see changes.Feed.
func (s *Server) Subscribe(filters []changes.Filter, after changes.Position) (*changes.Stream, error) {
	return s.changes.Subscribe(filters, after)
}

// Restore turns the tree into that of a backup; see backup.Restorer.
func (s *Server) Restore(ctx context.Context, in io.Reader, o backup.RestoreOptions) (backup.Restored, error) {
	return s.restorer.Restore(ctx, in, o)
}

// Status returns this server's place in the ensemble.
func (s *Server) Status() consensus.Status { return s.consensus.Status() }

// Expired returns the record of sessions that have expired.
func (s *Server) Expired() *insight.Expirations { return s.expired }

// Slow returns the record of slow requests.
func (s *Server) Slow() *insight.SlowLog { return s.slow }

// Usage returns the counts of who uses the server most.
func (s *Server) Usage() *insight.Usage { return &s.usage }

// Config returns the configuration that New was given.
func (s *Server) Config() Config { return s.cfg }

// Auth returns the server's Authenticator.
func (s *Server) Auth() *auth.Authenticator { return s.cfg.Auth }
