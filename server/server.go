package server

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/server/restore"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// These belong to package consensus; the doors know them by these names.
type (
	// Waiter is told what became of a proposed command.
	Waiter = consensus.Waiter
	// Role is what a server is in the ensemble.
	Role = consensus.Role
	// Status is a server's place in the ensemble at one moment.
	Status = consensus.Status
)

// The roles.
const (
	RoleStandalone = consensus.RoleStandalone
	RoleLeader     = consensus.RoleLeader
	RoleFollower   = consensus.RoleFollower
	RoleObserver   = consensus.RoleObserver
	RoleNone       = consensus.RoleNone
)

// Consensus is what the server needs of package consensus.
type Consensus interface {
	// Propose sends a command on its way and returns before it is applied. It
	// blocks while too much is pending, except for the ensemble's own commands
	// (expiry, the reaper's): the clock that proposes those must not stand
	// still. An error means that the command was not and will not be sent.
	Propose(c *state.Command, w Waiter) error
	// Touch reports sessions whose clients were heard.
	Touch(ids []znode.SessionID)
	// Status says how this server stands in the ensemble.
	Status() Status

	Cluster
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
	ExtendedTypes bool   // allow TTL znodes
	EnforceQuota  bool   // hard quotas refuse
	SuperDigest   string // "super:<base64 of SHA-1>"; empty: no super user
	WatchLimit    int    // paths one connection may watch; 0: watch.DefaultLimit
	Reap          ReapConfig
	Logger        *slog.Logger
}

// Server is one server of the ensemble, as its doors see it.
type Server struct {
	cfg     Config
	flags   state.Flags
	logger  *slog.Logger
	watches *watch.Manager
	agree   Consensus

	nextShard   atomic.Uint32
	nextSession atomic.Int64
	draining    atomic.Bool
	stopping    atomic.Bool
	// applying is when the entry that is being applied was begun, since started;
	// 0: there is none.
	applying atomic.Int64
	started  time.Time

	view     viewLock // protects current, what it leads to, and the record of changes
	current  View
	changes  *changes.Feed
	restorer *restore.Restorer

	// orphans are the connections whose session an entry has closed although
	// another connection had asked for it. The applying goroutine's own.
	orphans []*Conn
	late    []znode.Event // only by a deliberate fault (package fault)

	mu    sync.Mutex // protects the fields below
	conns map[*Conn]struct{}
	bound map[znode.SessionID]*Conn
	// heard are sessions that were heard since the last report to the leader and
	// have no connection here: it has gone, or they never had one (HTTP).
	heard map[znode.SessionID]struct{}
	quota map[string]time.Time // quota'd path → when it was last logged
	// ends are closed when their session ends.
	ends map[znode.SessionID]map[*sessionEnd]struct{}

	latelyMu sync.Mutex // protects lately; nothing else is locked under it
	// lately are the connections that were heard since the last report to the leader. The silent ones are
	// not looked at: of thousands of idle sessions, few have said something.
	lately []*Conn

	leader  leadership
	catchUp catchingUp
	stop    chan struct{}
	done    sync.WaitGroup
}

// New returns a server that is deaf until Start. The machine it shows is the
// one that consensus hands over with StateReplaced.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg, logger: cfg.Logger,
		watches: watch.New(watch.Limit(cfg.WatchLimit)),
		conns:   map[*Conn]struct{}{},
		bound:   map[znode.SessionID]*Conn{},
		heard:   map[znode.SessionID]struct{}{},
		quota:   map[string]time.Time{},
		ends:    map[znode.SessionID]map[*sessionEnd]struct{}{},
		stop:    make(chan struct{}),
		started: time.Now(),
	}
	if cfg.ExtendedTypes {
		s.flags |= state.FlagExtendedTypes
	}
	if cfg.EnforceQuota {
		s.flags |= state.FlagEnforceQuota
	}
	s.current = View{machine: state.New(), watches: s.watches}
	s.changes = changes.NewFeed(func(visit func(znode.Zxid)) {
		s.View(func(v *View) { visit(v.Zxid()) })
	}, s.stop)
	s.restorer = restore.New(s, cfg.Logger)
	// ZooKeeper's numbering: the server in the top byte, then the time, then a
	// counter, so that no server ever gives an id twice.
	millis := uint64(time.Now().UnixMilli())
	s.nextSession.Store(int64(uint64(cfg.ID)<<56 | millis<<24>>8))
	return s
}

// Start begins to serve with the given consensus. Stop ends it.
func (s *Server) Start(c Consensus) {
	s.agree = c
	s.done.Add(1)
	go s.tick()
}

// Stop disconnects every client and ends the server's goroutines. Only the first
// call has an effect.
func (s *Server) Stop() {
	if !s.stopping.CompareAndSwap(false, true) {
		return
	}
	close(s.stop)
	s.disconnectAll(ReasonStopping)
	s.done.Wait()
}

// View calls visit with the present state; visit must be quick.
func (s *Server) View(visit func(v *View)) {
	s.view.shards[0].RLock()
	defer s.view.shards[0].RUnlock()
	visit(&s.current)
}

// Subscribe starts a stream of changes; see changes.Feed.
func (s *Server) Subscribe(filters []changes.Filter, after changes.Position) (*changes.Stream, error) {
	return s.changes.Subscribe(filters, after)
}

// Restore turns the tree into that of a backup; see restore.Restorer.
func (s *Server) Restore(ctx context.Context, in io.Reader, o restore.Options) (restore.Result, error) {
	return s.restorer.Restore(ctx, in, o)
}

// Digest is a number that servers in the same state share, and the zxid at
// which it was taken. It reads every znode, without holding anybody up for
// more than the freezing of the state.
func (s *Server) Digest() (znode.Zxid, uint64) {
	frozen, zxid := s.Snapshot()
	defer frozen.Release()
	return zxid, frozen.Digest()
}

// Snapshot returns the whole state as it is at this moment, and its zxid. Nobody is
// held up for longer than the freezing. The caller must Release it.
func (s *Server) Snapshot() (*state.Snapshot, znode.Zxid) {
	s.view.Lock()
	defer s.view.Unlock()
	return s.current.machine.Snapshot(), s.current.machine.Zxid()
}

// Propose sends a command that belongs to no connection.
func (s *Server) Propose(c *state.Command, w Waiter) error {
	c.Flags |= s.flags
	return s.agree.Propose(c, w)
}

// Do proposes a command and waits for its result, of which it returns a copy
// that nobody changes. When ctx ends first,
// the error is ctx's and the outcome is unknown, unless it had ended before the
// call: then nothing is sent.
func (s *Server) Do(ctx context.Context, c *state.Command) (state.Result, error) {
	if err := ctx.Err(); err != nil {
		return state.Result{}, err // nothing has been sent
	}
	w := &await{done: make(chan struct{})}
	if err := s.Propose(c, w); err != nil {
		return state.Result{}, err
	}
	select {
	case <-w.done:
		return w.result, w.err
	case <-ctx.Done():
		return state.Result{}, ctx.Err()
	}
}

type await struct {
	result state.Result
	err    error
	done   chan struct{}
}

func (w *await) Applied(r *state.Result) {
	w.result = *r
	w.result.Multi = append([]state.OpResult(nil), r.Multi...)
	if r.Session != nil {
		x := *r.Session // the table's own goes on changing
		w.result.Session = &x
	}
	close(w.done)
}

func (w *await) Lost() {
	w.err = znode.ErrConnectionLoss
	close(w.done)
}

// Status says how this server stands in the ensemble.
func (s *Server) Status() Status { return s.agree.Status() }

// Config is what the server was made with.
func (s *Server) Config() Config { return s.cfg }

// Authenticate checks credentials of scheme digest: "user:password". It
// returns the identities they prove: the digest itself, and the super user's
// if it is that.
func (s *Server) Authenticate(credentials string) []znode.ID {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials))
	digest := user + ":" + base64.StdEncoding.EncodeToString(sum[:])
	ids := []znode.ID{{Scheme: "digest", ID: digest}}
	if s.cfg.SuperDigest != "" && digest == s.cfg.SuperDigest {
		ids = append(ids, znode.ID{Scheme: "super", ID: ""})
	}
	return ids
}

func (s *Server) clamp(d time.Duration) time.Duration {
	d = min(max(d, s.cfg.MinSessionTimeout), s.cfg.MaxSessionTimeout)
	return d.Truncate(time.Millisecond)
}

func (s *Server) newSessionID() znode.SessionID { return znode.SessionID(s.nextSession.Add(1)) }

func (s *Server) newPassword() (p session.Password) {
	if _, err := rand.Read(p[:]); err != nil {
		panic(fmt.Sprintf("server: the system gives no random bytes: %v", err))
	}
	return p
}

// bind makes c the connection of a session on this server.
func (s *Server) bind(c *Conn, x *session.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return // and Close will not look for it
	}
	c.session, c.timeout = x.ID, x.Timeout
	s.bound[x.ID] = c
}

func (s *Server) unbind(c *Conn, id znode.SessionID) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.forget(c, id)
}

// forget undoes bind.
func (s *Server) forget(c *Conn, id znode.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound[id] != c {
		return
	}
	delete(s.bound, id)
	if c.heard.Load() {
		s.heard[id] = struct{}{}
	}
}

func (s *Server) boundTo(id znode.SessionID) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound[id]
}

// disconnectCutOff disconnects the clients that have gone without a leader for too
// long. Those that have no session yet count as the shortest one.
func (s *Server) disconnectCutOff() {
	contact := s.Status().Contact
	if contact <= s.patience(s.cfg.MinSessionTimeout) {
		return
	}
	s.mu.Lock()
	var out []*Conn
	for c := range s.conns {
		_, timeout := c.Session()
		if contact > s.patience(max(timeout, s.cfg.MinSessionTimeout)) {
			out = append(out, c)
		}
	}
	s.mu.Unlock()
	for _, c := range out {
		c.client.Disconnect(ReasonNoLeader)
	}
}

func (s *Server) disconnectAll(r Reason) {
	s.mu.Lock()
	all := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.client.Disconnect(r)
	}
}
