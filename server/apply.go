package server

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/fault"
	"github.com/zk-lite/zk-lite/internal/repeats"
	"github.com/zk-lite/zk-lite/server/changes"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// viewShards is the number of readers that can enter without touching the same
// cache line. The writer takes all of them, 20 ns each. With two processors,
// BenchmarkConn_Read shows no difference to one shard (300 to 500 ns per read either
// way); the shards are for servers with more, which has not been measured.
const viewShards = 8

// viewLock is a readers-writer lock whose readers scale.
type viewLock struct {
	shards [viewShards]struct {
		sync.RWMutex
		_ [40]byte // to a cache line of 64 bytes
	}
}

func (l *viewLock) Lock() {
	for i := range l.shards {
		l.shards[i].Lock()
	}
}

func (l *viewLock) Unlock() {
	for i := range l.shards {
		l.shards[i].Unlock()
	}
}

// View is the state at one moment. It is valid during one call of an Op.
type View struct {
	machine *state.Machine
	watches *watch.Manager
	local   *LocalSessions
	changes *changes.Feed
	fresh   *Freshness
	times   *forward.Times // of the entry that is being applied; nil: none is

	freezing sync.Mutex // held by the reader that takes a snapshot of the tree
}

// Times returns how long the entry took that is being applied, for an Op's Done; nil if none is.
func (v *View) Times() *forward.Times { return v.times }

// Tree returns the tree of znodes, for reading.
func (v *View) Tree() *znode.Tree { return v.machine.Tree() }

// Subtree reads a subtree, or freezes it if it is large; with small, it is nil instead. See znode.Tree.Subtree.
func (v *View) Subtree(root string, ids []znode.ID, small bool) (*znode.Subtree, znode.Error) {
	if !small {
		v.freezing.Lock()
		defer v.freezing.Unlock()
	}
	return v.Tree().Subtree(root, ids, small)
}

// Zxid returns the last transaction that this server has applied.
func (v *View) Zxid() znode.Zxid { return v.machine.Zxid() }

// Machine returns the whole replicated state, for reading.
func (v *View) Machine() *state.Machine { return v.machine }

// Local returns the sessions that this server alone knows.
func (v *View) Local() *LocalSessions { return v.local }

// Changes returns the changes that this server remembers.
func (v *View) Changes() *changes.Feed { return v.changes }

// Fresh returns how old this view may be.
func (v *View) Fresh() *Freshness { return v.fresh }

// Watches returns the watches of this server's connections.
func (v *View) Watches() *watch.Manager { return v.watches }

// View calls visit with the present state; visit must be quick.
func (s *Server) View(visit func(v *View)) {
	s.view.shards[0].RLock()
	defer s.view.shards[0].RUnlock()
	visit(&s.current)
}

// Digest returns a number that servers in the same state share, and the zxid at
// which it was taken. It reads every znode, but holds the view lock no longer
// than Snapshot does.
func (s *Server) Digest() (znode.Zxid, uint64) {
	x, zxid := s.Snapshot()
	defer x.Release()
	return zxid, x.Digest()
}

// Snapshot returns the whole state as it is at this moment, and its zxid. It holds the
// view lock for microseconds. The caller must Release it.
func (s *Server) Snapshot() (*state.Snapshot, znode.Zxid) {
	s.view.Lock()
	defer s.view.Unlock()
	return s.current.machine.Snapshot(), s.current.machine.Zxid()
}

// handler is the server's side towards consensus: it implements consensus.Handler.
type handler struct {
	srv *Server
	// applying is when the entry that is being applied was begun, since srv.started;
	// 0: none is.
	applying atomic.Int64
	quota    repeats.Filter // of lines in the log, by path

	// The fields below belong to the goroutine that applies the log.

	// closedElsewhere are the connections whose session an entry has closed although
	// another connection had asked for it.
	closedElsewhere []*Conn
	mirrored        bool          // the state was a mirror after the last entry
	late            []znode.Event // only by a deliberate fault (package fault)
}

// BeginApply implements consensus.Handler: it gives the calling goroutine the state
// alone, until EndApply.
func (h *handler) BeginApply() {
	h.srv.view.Lock()
	h.applying.Store(int64(time.Since(h.srv.started)) + 1)
}

// Entry implements consensus.Handler.
func (h *handler) Entry(t *forward.Times) { h.srv.current.times = t }

// EndApply implements consensus.Handler: it lets readers in again.
func (h *handler) EndApply() {
	if fault.On(fault.WatchAfterReply) {
		for i := range h.late {
			h.srv.watches.Trigger(&h.late[i])
		}
		h.late = h.late[:0]
	}
	for i, c := range h.closedElsewhere {
		c.client.Disconnect(ReasonClosed)
		h.closedElsewhere[i] = nil
	}
	h.closedElsewhere = h.closedElsewhere[:0]
	h.applying.Store(0)
	if t := h.srv.current.times; t != nil {
		h.srv.current.times = nil
		if t.Led {
			h.srv.slow.AddEntry(insight.SlowEntry{
				At: t.Arrived, Index: t.Index, Term: t.Term, Propose: max(t.Proposed.Sub(t.Arrived), 0),
				Disk: t.Disk, Majority: t.Majority, Apply: time.Since(t.Committed),
			})
		}
	}
	h.noteMirror()
	h.srv.admission.bytes.Store(h.srv.current.machine.Memory())
	h.srv.view.Unlock()
}

// busy reports whether one entry has been applied for longer than this. Meanwhile
// nothing is read from clients, because their requests could not be answered.
func (h *handler) busy(now time.Time, limit time.Duration) bool {
	since := h.applying.Load()
	return since != 0 && now.Sub(h.srv.started)-time.Duration(since) > limit
}

// StateReplaced implements consensus.Handler: it replaces the whole state by another
// machine, at the start or when a snapshot came from the leader. It is called between
// BeginApply and EndApply. Clients that are connected may have missed events, so they
// are disconnected and set their watches again.
func (h *handler) StateReplaced(m *state.Machine) {
	s := h.srv
	s.current.machine = m
	s.changes.Restart(m.Zxid())
	s.ends.end(func(id znode.SessionID) bool { return m.Sessions().Get(id) == nil })
	s.Source.loseAll()
	s.conns.disconnectAll(ReasonReset)
}

// Event implements consensus.Handler.
func (h *handler) Event(e *znode.Event) {
	if e.Type == znode.EventPurged || e.Type == znode.EventPurgedBelow {
		h.srv.changes.Purge(e, h.srv.current.Tree())
		return
	}
	if fault.On(fault.WatchAfterReply) {
		h.late = append(h.late, *e)
	} else {
		h.srv.watches.Trigger(e)
	}
	h.srv.changes.Add(e)
}

// QuotaExceeded implements consensus.Handler. A subtree is reported at most
// once per minute, as in ZooKeeper.
func (h *handler) QuotaExceeded(path string) {
	path = strings.Clone(path) // it is a part of a log entry
	if pass, _ := h.quota.Pass(path); pass {
		h.srv.logger.Warn("quota exceeded", "path", path)
	}
}

// Halted implements consensus.Handler: the clients continue at other servers.
func (h *handler) Halted() { h.srv.conns.disconnectAll(ReasonHalted) }
