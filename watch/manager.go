package watch

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/znode"
)

// Mode selects the events of a watch, and whether it fires once.
type Mode uint8

// The modes. One watcher may hold several of them on one path.
const (
	Data       Mode = iota + 1 // getData and exists; one-shot
	Child                      // getChildren; one-shot
	Persistent                 // data and children of one path, until removed
	Recursive                  // a path and all below it, never ChildrenChanged, until removed
)

// String returns the mode's name in messages.
func (m Mode) String() string {
	switch m {
	case Data:
		return "data"
	case Child:
		return "child"
	case Persistent:
		return "persistent"
	case Recursive:
		return "recursive"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// DefaultLimit bounds the paths that one watcher may watch, unless Limit
// changes it: at the measured size of a watch (below 100 bytes) a single client
// cannot take more than some 25 MB, and paths. A cache of a hundred thousand znodes fits.
const DefaultLimit = 1 << 18

// DefaultBytes bounds the memory of the watches of all watchers, unless Bytes changes it. Beyond it a watcher may still
// have watches of shareBytes, so that one that takes all the memory leaves something to each of the others. watchMemory
// is what a watch counts for without its path: at most 93 bytes, measured, and what the path's text is rounded up by.
const (
	DefaultBytes = 1 << 30
	shareBytes   = 1 << 20
	watchMemory  = 112
)

// keptRoom is how many slots a table keeps for the next watch. A larger one
// shrinks when few are left.
const keptRoom = 64

// depths is how many depths of the tree countRecursive distinguishes; deeper
// paths share the last.
const depths = 32

// Manager holds the watches of all connections of one server. The zero value
// is not ready: use New.
type Manager struct {
	seed     maphash.Seed
	limit    int
	maxBytes int64
	fanout   int // watchers of a path from which on a goroutine notifies them; 0: never

	shards    [shardCount]shard
	armed     atomic.Int64         // (watcher, path) pairs, whatever their modes
	bytes     atomic.Int64         // that they take
	conns     atomic.Int64         // watchers with a watch in the data table
	recursive [depths]atomic.Int64 // recursive watches by the depth of their path

	trigger trigger // for Trigger only, which runs in one goroutine at a time
	backlog backlog
}

// Option changes a setting of New.
type Option func(*Manager)

// Limit bounds the paths that one watcher may watch, instead of DefaultLimit; 0
// or less means DefaultLimit. Beyond it Add returns *LimitError.
func Limit(paths int) Option {
	return func(m *Manager) {
		if paths > 0 {
			m.limit = paths
		}
	}
}

// Bytes bounds the memory of all watches, in bytes, instead of DefaultBytes; 0 or less means DefaultBytes.
func Bytes(most int64) Option {
	return func(m *Manager) {
		if most > 0 {
			m.maxBytes = most
		}
	}
}

// New returns a Manager without watches.
func New(opts ...Option) *Manager {
	m := &Manager{seed: maphash.MakeSeed(), limit: DefaultLimit, maxBytes: DefaultBytes}
	m.backlog.room.L = &m.backlog.mu
	for _, o := range opts {
		o(m)
	}
	return m
}

// Watcher is one connection at a Manager. Pass it only to the Manager that made
// it.
type Watcher struct {
	sink  Sink
	owner *Manager

	dataPaths atomic.Int64 // paths that it watches in the data table

	telling sync.Mutex // held while it is notified; protects mark
	mark    uint64     // what it has been notified of; see trigger.number

	hash    uint32
	dropped bool       // protected by mu
	mu      sync.Mutex // protects the fields below
	bytes   int64      // that its watches take
	paths   set[*entry, struct{}]
}

// NewWatcher registers a connection, whose notifications go to s. It costs
// nothing until the first Add; call Drop when the connection has ended.
func (m *Manager) NewWatcher(s Sink) *Watcher {
	return &Watcher{sink: s, owner: m, hash: rand.Uint32()}
}

// Sink returns the Sink that was given to NewWatcher, to name the watcher in a report.
func (w *Watcher) Sink() Sink { return w.sink }

// Paths is how many paths the watcher watches.
func (w *Watcher) Paths() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paths.n
}

// shard returns the stripe of a path, and the path's hash.
func (m *Manager) shard(path string) (*shard, uint32) {
	hash := uint32(maphash.String(m.seed, path))
	return &m.shards[hash%shardCount], hash
}

// ErrDropped is the error of Add for a watcher that was dropped with its connection.
var ErrDropped = errors.New("watch: the watcher's connection is closed")

// LimitError is the error of Add for a watcher that watches as many paths as it may, or when the
// watches of all watchers take as much memory as they may. It wraps znode.ErrThrottled.
type LimitError struct {
	Path  string // the path that was not added
	Limit int    // paths that one watcher may watch
	Bytes int64  // that all watches may take; 0 if Limit was the bound
}

// Error names the path and the bound.
func (e *LimitError) Error() string {
	if e.Bytes > 0 {
		return fmt.Sprintf("watch: cannot watch a path of %d bytes: the watches of all connections take %d bytes, "+
			"which is the limit (limits.watchBytes)", len(e.Path), e.Bytes)
	}
	return fmt.Sprintf("watch: cannot watch %q: the connection already watches %d paths, "+
		"which is the limit for one connection", e.Path, e.Limit)
}

// Unwrap returns the protocol's code for the refusal.
func (e *LimitError) Unwrap() error { return znode.ErrThrottled }

// Add sets a watch of w on path. Adding a mode again changes nothing. The first
// Add of a path keeps it as it is, for all watchers, so it must be valid and must
// not pin a larger buffer.
// Errors: *LimitError, ErrDropped, and znode.ErrBadArguments for an invalid
// mode.
func (m *Manager) Add(w *Watcher, path string, mode Mode) error {
	k := modesOf(mode)
	if k == 0 {
		return fmt.Errorf("watch: %s is no mode of a watch: %w", mode, znode.ErrBadArguments)
	}
	s, hash := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.paths.find(hash, path)
	from := e.get(w)
	if from&k != 0 {
		return nil
	}
	if e == nil {
		e = &entry{path: path, hash: hash}
	}
	if from == 0 {
		if err := w.remember(e); err != nil {
			return err
		}
		m.armed.Add(1)
	}
	if e.size() == 0 {
		s.paths.insert(e)
	}
	s.setLocked(e, w, from, from|k)
	return nil
}

// remember adds a path to the watcher's own index; the path's shard is locked.
func (w *Watcher) remember(e *entry) error {
	m, bytes := w.owner, bytesOf(e.path)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dropped {
		return ErrDropped
	}
	if w.paths.n >= m.limit {
		return &LimitError{Path: e.path, Limit: m.limit}
	}
	if m.bytes.Load()+bytes > m.maxBytes && w.bytes+bytes > shareBytes {
		return &LimitError{Path: e.path, Bytes: m.maxBytes}
	}
	w.paths.put(e, struct{}{})
	w.bytes += bytes
	m.bytes.Add(bytes)
	return nil
}

// bytesOf estimates the memory of a watch on path.
func bytesOf(path string) int64 { return watchMemory + int64(len(path)) }

// removeLocked takes modes from w on an entry's path, and reports whether there was one. The shard is locked.
func (m *Manager) removeLocked(s *shard, e *entry, w *Watcher, out modes) bool {
	from := e.get(w)
	to := from &^ out
	if to == from {
		return false
	}
	s.setLocked(e, w, from, to)
	if to == 0 {
		m.armed.Add(-1)
		w.forget(e)
	}
	return true
}

// forget removes a path from the watcher's own index; the path's shard is locked, or its entry no longer there.
func (w *Watcher) forget(e *entry) {
	bytes := bytesOf(e.path)
	w.mu.Lock()
	if w.paths.remove(e) { // else Drop has
		w.bytes -= bytes
		w.owner.bytes.Add(-bytes)
	}
	w.mu.Unlock()
}

// Remove removes the watches of w on path that kind selects, and reports
// whether there was one (DataTree.removeWatch; if not, the protocol's
// NOWATCHER). An unknown kind removes nothing.
func (m *Manager) Remove(w *Watcher, path string, kind znode.WatcherType) bool {
	s, hash := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.removeLocked(s, s.paths.find(hash, path), w, selects(kind))
}

// Contains reports whether w has a watch on path that kind selects
// (DataTree.containsWatcher); false for an unknown kind.
func (m *Manager) Contains(w *Watcher, path string, kind znode.WatcherType) bool {
	s, hash := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths.find(hash, path).get(w)&selects(kind) != 0
}

// Drop removes all watches of a connection that has ended; from now on Add
// refuses the watcher. A second Drop does nothing. It locks one path at a time.
func (m *Manager) Drop(w *Watcher) {
	w.mu.Lock()
	paths := w.paths
	m.bytes.Add(-w.bytes)
	w.paths, w.bytes, w.dropped = set[*entry, struct{}]{}, 0, true
	w.mu.Unlock()
	for e := range paths.all() {
		s := &m.shards[e.hash%shardCount]
		s.mu.Lock()
		m.removeLocked(s, e, w, dataTable|childTable) // unless a Trigger or a Remove has been here meanwhile
		s.mu.Unlock()
	}
}

// countData counts the watcher's paths in the data table, and the connections
// that have any.
func (w *Watcher) countData(by int64) {
	if by == 0 {
		return
	}
	switch n := w.dataPaths.Add(by); {
	case n == 1 && by > 0:
		w.owner.conns.Add(1)
	case n == 0:
		w.owner.conns.Add(-1)
	}
}

// countRecursive counts the recursive watches by depth, so that Trigger looks
// only at ancestors that can have one.
func (m *Manager) countRecursive(path string, by int64) {
	if by != 0 {
		m.recursive[depth(path)].Add(by)
	}
}

// depth is 0 for the root, 1 for /a, 2 for /a/b, at most depths-1.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return min(strings.Count(path, "/"), depths-1)
}
