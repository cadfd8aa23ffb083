package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/internal/testkit/clock"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// Times of the simulated ensemble.
const (
	electionTimeout = 500 * time.Millisecond
	tick            = 500 * time.Millisecond
	minTimeout      = 2 * time.Second
	maxTimeout      = 20 * time.Second
	grace           = 5 * time.Second
	// restartDelay is what a supervisor waits before it starts a process again.
	restartDelay = time.Second
)

// world is one simulated ensemble with everything around it. Servers are counted from 0.
type world struct {
	seed     uint64
	start    time.Time
	rng      *rand.Rand // of the faults; its goroutine's own
	net      *network
	servers  []*machine
	truth    *truth
	record   *recorder
	rights   rights
	again    again
	expiring expiring
	logger   *slog.Logger
	opt      options
	counts   map[string]int // faults by kind; the fault goroutine's own

	clientsCut []atomic.Bool // by server: clients cannot reach it
	replacing  atomic.Bool   // a server is being replaced
	healed     chan struct{} // closed when nothing is broken
	later      sync.WaitGroup
	ended      sync.WaitGroup
}

// machine is a server's host, which survives its processes.
type machine struct {
	w    *world
	i    int
	disk *disk
	busy chan struct{} // held by who ends or starts a process; capacity 1
	// outside says that the server may have been taken out of the ensemble.
	outside atomic.Bool
	// removalUnknown says that its removal had no answer: it may be halted, rightly, with its data.
	removalUnknown atomic.Bool
	back           time.Time // when it may be taken in again; belongs to who sets outside

	mu   sync.Mutex // protects the field below
	life *life      // nil: no process runs
}

// life is one process of a server.
type life struct {
	w      *world
	i      int
	srv    *server.Server
	node   *consensus.Node
	freeze gate
	dead   atomic.Bool
	closed chan struct{} // when a dead one has wound down
}

func newWorld(opt options, seed uint64) *world {
	w := &world{
		seed: seed, start: time.Now(), rng: rand.New(rand.NewPCG(seed, 1)), opt: opt,
		truth: newTruthLog(), record: newRecorder(), counts: map[string]int{},
		clientsCut: make([]atomic.Bool, opt.servers), healed: make(chan struct{}),
	}
	w.truth.start = w.start
	w.net = newNetwork(opt.servers, rand.New(rand.NewPCG(seed, 2)))
	var out io.Writer = io.Discard
	level := slog.LevelError + 4
	if opt.log {
		out, level = os.Stderr, slog.LevelDebug
	}
	w.logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
	for i := range opt.servers {
		w.servers = append(w.servers, &machine{
			w: w, i: i, disk: newDisk(seed+uint64(i)*1000, opt.disks[min(i, len(opt.disks)-1)]), busy: make(chan struct{}, 1),
		})
	}
	return w
}

func (w *world) now() time.Duration { return time.Since(w.start) }

func (w *world) configuration() (list []membership.Server) {
	for i := range w.servers {
		list = append(list, membership.Server{ID: state.ServerID(i), Addr: addrOf(i), Voter: true})
	}
	return list
}

// running is the server's process, or nil.
func (m *machine) running() *life {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life
}

// boot starts a process on a server that has none.
func (m *machine) boot() error {
	w := m.w
	l := &life{w: w, i: m.i, closed: make(chan struct{})}
	fatal := func(err error) {
		switch {
		case l.dead.Load():
		case strings.Contains(err.Error(), "since a transfer of leadership failed"):
			// hashicorp/raft leaves no other way out (consensus/storage, the monitor); a supervisor starts
			// the process again.
			w.net.change(func() { w.net.counts["ended by itself, and started again"]++ })
			w.ended.Go(func() { m.again(l) })
		case m.disk.blankAgain() && strings.Contains(err.Error(), "data directory is empty, but the ensemble exists"):
			// It asked a server that has not heard of its removal yet.
			w.net.change(func() { w.net.counts["refused for its empty disk, and started again"]++ })
			w.ended.Go(func() {
				clock.Sleep(restartDelay)
				m.again(l)
			})
		default:
			w.record.violation("Damage", "server %d ended at %v: %v", l.i, w.now(), err)
		}
	}
	logger := w.logger.With("server", m.i)
	m.disk.fs.PowerOn()
	storage, err := m.disk.store(logger, fatal)
	if err != nil {
		return fmt.Errorf("storage of server %d: %w", m.i, err)
	}
	l.srv = server.New(server.Config{
		ID: state.ServerID(m.i), Tick: tick, MinSessionTimeout: minTimeout, WatchFanout: 2,
		MaxSessionTimeout: maxTimeout, Grace: grace, Logger: logger, ExtendedTypes: true,
		Reap:          server.ReapConfig{Interval: reapInterval},
		ChangesWindow: w.opt.changes,
		LocalSessions: w.opt.local, UpgradeLocalSessions: w.opt.local,
	})
	h := &handler{Handler: l.srv.Handler(), life: l, reader: w.truth.reader(m.i)}
	listener := w.net.listen(m.i)
	l.node, err = consensus.Open(consensus.Config{
		ID: state.ServerID(m.i), Servers: w.configuration(), Listener: listener,
		Dial: w.net.dialer(m.i), Storage: storage, Handler: h, Logger: logger, Fatal: fatal,
		ElectionTimeout: electionTimeout, CheckInterval: time.Second, SnapshotCommands: w.opt.snapshot,
		TrailingLogs: uint64(w.opt.snapshot / 8), NoPush: w.opt.noPush, NoOverlap: w.opt.noOverlap,
		NoFailover: w.opt.noFailover,
		Publish:    &state.Member{ID: state.ServerID(m.i), Peer: addrOf(m.i), Addr: addrOf(m.i)}, // for the newest level
	})
	if err != nil {
		return fmt.Errorf("consensus of server %d: %w", m.i, err)
	}
	l.srv.Start(&agreement{l.node, l}, l.node.Ensemble())
	m.mu.Lock()
	m.life = l
	m.mu.Unlock()
	return nil
}

// again starts a process in the place of one that has ended itself.
func (m *machine) again(l *life) {
	m.busy <- struct{}{}
	defer func() { <-m.busy }()
	if m.running() == l {
		m.crash(false)
		m.w.boot(m)
	}
}

// crash ends a process without warning. With power, the host vanishes: what was not synced may be
// lost, and the network says nothing.
func (m *machine) crash(power bool) {
	m.mu.Lock()
	l := m.life
	m.life = nil
	m.mu.Unlock()
	if l == nil {
		return
	}
	l.dead.Store(true)
	m.w.net.kill(m.i, power)
	m.disk.end(power)
	l.freeze.open()
	m.w.ended.Go(func() {
		l.srv.Stop()
		l.node.Close()
		close(l.closed)
	})
	<-l.closed
}

// stop ends a process in good order: leadership is handed over, clients are sent away.
func (m *machine) stop() {
	m.mu.Lock()
	l := m.life
	m.life = nil
	m.mu.Unlock()
	if l == nil {
		return
	}
	l.srv.Stop()
	if err := l.node.Close(); err != nil {
		m.w.logger.Info("closing", "server", m.i, "error", err)
	}
	l.dead.Store(true)
	m.disk.end(false)
}

// pause stops a server until resume is called. A call that stops the process in good order
// meanwhile waits for that, as SIGTERM does for a process that is stopped.
func (m *machine) pause() (resume func()) {
	l := m.running()
	if l == nil {
		return func() {}
	}
	m.disk.freeze.close()
	l.freeze.close()
	m.w.net.change(func() { m.w.net.hosts[m.i].frozen = true })
	return func() {
		m.disk.freeze.open()
		l.freeze.open()
		m.w.net.change(func() { m.w.net.hosts[m.i].frozen = false })
	}
}

// leader is the server that leads for most of the others, or -1.
func (w *world) leader() int {
	votes := map[state.ServerID]int{}
	for _, m := range w.servers {
		if l := m.running(); l != nil {
			votes[l.node.Status().Leader]++
		}
	}
	for id, n := range votes {
		if id != state.NoServer && n > len(w.servers)/2 {
			return int(id)
		}
	}
	return -1
}

// agreement is the node as package server sees it; it notes what sessions' clocks decide.
type agreement struct {
	*consensus.Node
	life *life
}

// Propose implements server.Consensus.
func (a *agreement) Propose(c *state.Command, w forward.Waiter, from forward.From) error {
	if c.Op == state.OpExpireSession {
		a.life.w.truth.deciding(c.Session, c.Term)
	}
	if c.Op == state.OpReap {
		a.life.w.expiring.reaping(c.Path, a.life.w.now())
	}
	return a.Node.Propose(c, w, from)
}

// handler stands between consensus and a server: it holds up the application of the log while the
// process stands still, and writes down what the log does.
type handler struct {
	consensus.Handler
	life    *life
	machine *state.Machine
	reader  *reader
	term    atomic.Uint64
}

// BeginApply implements consensus.Handler.
func (h *handler) BeginApply() {
	h.life.freeze.wait()
	h.Handler.BeginApply()
}

// StateReplaced implements consensus.Handler.
func (h *handler) StateReplaced(m *state.Machine) {
	h.machine = m
	h.Handler.StateReplaced(m)
}

// Event implements consensus.Handler.
func (h *handler) Event(e *znode.Event) {
	c := check.Change{Zxid: e.Zxid, Type: e.Type, Path: strings.Clone(e.Path)}
	if e.Type != znode.EventDeleted {
		data, stat, _ := h.machine.Tree().Get(e.Path, everybody())
		c.Value, c.Owner = string(data), stat.EphemeralOwner
	}
	h.life.w.expiring.see(c, h.life.w.now())
	if why := h.reader.see(c); why != "" {
		h.life.w.record.violation("Replicas", "server %d: %s", h.life.i, why)
	}
	h.Handler.Event(e)
}

// SessionOpened implements consensus.Handler.
func (h *handler) SessionOpened(x *session.Session) {
	h.life.w.truth.opened(x)
	h.life.w.truth.heard(h.term.Load(), x.ID)
	h.Handler.SessionOpened(x)
}

// SessionAttached implements consensus.Handler.
func (h *handler) SessionAttached(x *session.Session, former state.ServerID) {
	h.life.w.truth.attached(x)
	h.life.w.truth.heard(h.term.Load(), x.ID)
	h.Handler.SessionAttached(x, former)
}

// SessionClosed implements consensus.Handler.
func (h *handler) SessionClosed(x *session.Session, ephemerals []string, expired bool) {
	h.life.w.truth.closed(x.ID, expired, h.machine.Zxid())
	h.Handler.SessionClosed(x, ephemerals, expired)
}

// Lead implements consensus.Handler.
func (h *handler) Lead(term uint64) {
	h.term.Store(term)
	h.life.w.truth.lead(term)
	h.Handler.Lead(term)
}

// Halted implements consensus.Handler. No disk of a simulation is put back, and no memory fails.
func (h *handler) Halted() {
	if x := h.life.node; x != nil && x.Status().Halt.Kind != selfcheck.Removed {
		h.life.w.record.violation("Replicas", "server %d: %+v", h.life.i, x.Status().Halt)
	}
	h.Handler.Halted()
}

// Touched implements consensus.Handler.
func (h *handler) Touched(by state.ServerID, ids []znode.SessionID) {
	for _, id := range ids {
		h.life.w.truth.heard(h.term.Load(), id)
	}
	h.Handler.Touched(by, ids)
}

// converged waits until all servers run, agree on a leader and have applied the same.
func (w *world) converged(ctx context.Context) bool {
	for wait(ctx, 50*time.Millisecond) == nil {
		index, same := uint64(0), true
		for i, m := range w.servers {
			l := m.running()
			if l == nil || l.node.Status().Leader == state.NoServer {
				same = false
				break
			}
			n := w.applied(l)
			same = same && (i == 0 || n == index)
			index = n
		}
		if same {
			return true
		}
	}
	return false
}

func (w *world) applied(l *life) (index uint64) {
	l.srv.View(func(v *server.View) { index = v.Machine().Index() })
	return index
}

// final reads the tree of one server, with the sessions that live then.
func (w *world) final(l *life) (list []check.Znode, zxid znode.Zxid) {
	l.srv.View(func(v *server.View) {
		zxid = v.Zxid()
		var walk func(path string)
		walk = func(path string) {
			data, stat, _ := v.Tree().Get(path, everybody())
			list = append(list, check.Znode{Path: path, Value: string(data), Owner: stat.EphemeralOwner})
			names, _, _ := v.Tree().Children(path, everybody())
			slices.Sort(names)
			for _, n := range names {
				walk(strings.TrimSuffix(path, "/") + "/" + n)
			}
		}
		walk("/")
	})
	return list, zxid
}

// everybody has the identity that may read everything: the recorder.
func everybody() []znode.ID { return []znode.ID{znode.SuperIDs} }
