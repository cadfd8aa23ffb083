package watch

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/znode"
)

// DefaultLimit is how many paths one watcher may watch unless Limit says
// otherwise: at the measured size of a watch (below 200 bytes) a single client
// cannot take more than some 50 MB. A cache of a hundred thousand znodes fits.
const DefaultLimit = 1 << 18

// DefaultBytes is how much memory the watches of all watchers may take unless Bytes says otherwise. Beyond it a watcher
// may have watches of shareBytes, so that one that takes all there is leaves something to each of the others.
// watchMemory is about what a watch takes beside its path.
const (
	DefaultBytes = 1 << 30
	shareBytes   = 1 << 20
	watchMemory  = 192
)

// keptRoom is the entries up to which an emptied map is kept for the next
// watch. A larger one is thrown away, because a Go map never gives back room.
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

	shards    [shardCount]shard
	armed     atomic.Int64         // (watcher, path) pairs, whatever their modes
	bytes     atomic.Int64         // that they take
	conns     atomic.Int64         // watchers with a watch in the data table
	recursive [depths]atomic.Int64 // recursive watches by the depth of their path

	trigger trigger // Trigger's own; it runs in one goroutine at a time
}

// Option changes a setting of New.
type Option func(*Manager)

// Limit bounds the paths that one watcher may watch, instead of DefaultLimit;
// 0 or less means DefaultLimit. Add answers *LimitError beyond it.
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

// New is a Manager without watches.
func New(opts ...Option) *Manager {
	m := &Manager{seed: maphash.MakeSeed(), limit: DefaultLimit, maxBytes: DefaultBytes}
	for _, o := range opts {
		o(m)
	}
	return m
}

// Watcher is one connection's hold on a Manager. All its methods belong to
// the Manager that made it.
type Watcher struct {
	sink  Sink
	owner *Manager

	dataPaths atomic.Int64 // paths that it watches in the data table
	mark      uint64       // the last round of Trigger that chose it; Trigger's own

	mu      sync.Mutex // protects the fields below
	paths   map[string]struct{}
	bytes   int64 // that they take
	peak    int   // most entries that paths has had since it was made
	dropped bool
}

// NewWatcher registers a connection, whose notifications go to s. It costs
// nothing until the first Add; call Drop when the connection has gone.
func (m *Manager) NewWatcher(s Sink) *Watcher { return &Watcher{sink: s, owner: m} }

// Sink is the Sink that the watcher was made with, to name it in a report.
func (w *Watcher) Sink() Sink { return w.sink }

// Paths is how many paths the watcher watches.
func (w *Watcher) Paths() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.paths)
}

func (m *Manager) shard(path string) *shard {
	return &m.shards[maphash.String(m.seed, path)%shardCount]
}

// Add leaves a watch of w on path. Adding a mode that is already there changes
// nothing. The path is kept as it is, so it must be valid and must not pin a
// larger buffer. Errors: *LimitError, ErrDropped, and znode.ErrBadArguments for
// a mode that is none.
func (m *Manager) Add(w *Watcher, path string, mode Mode) error {
	k := modesOf(mode)
	if k == 0 {
		return fmt.Errorf("watch: %s is no mode of a watch: %w", mode, znode.ErrBadArguments)
	}
	s := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.paths[path].get(w)
	if from&k != 0 {
		return nil
	}
	if from == 0 {
		if err := w.remember(path); err != nil {
			return err
		}
		m.armed.Add(1)
	}
	s.setLocked(path, w, from, from|k)
	return nil
}

// remember enters path in the watcher's own index; the path's shard is locked.
func (w *Watcher) remember(path string) error {
	m, bytes := w.owner, bytesOf(path)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dropped {
		return ErrDropped
	}
	if len(w.paths) >= m.limit {
		return &LimitError{Path: path, Limit: m.limit}
	}
	if m.bytes.Load()+bytes > m.maxBytes && w.bytes+bytes > shareBytes {
		return &LimitError{Path: path, Bytes: m.maxBytes}
	}
	if w.paths == nil {
		w.paths = make(map[string]struct{})
	}
	w.paths[path] = struct{}{}
	w.bytes += bytes
	m.bytes.Add(bytes)
	w.peak = max(w.peak, len(w.paths))
	return nil
}

// bytesOf is about what a watch on path takes.
func bytesOf(path string) int64 { return watchMemory + int64(len(path)) }

// forget takes path out of the watcher's own index; the path's shard is locked.
func (w *Watcher) forget(path string) {
	w.mu.Lock()
	if _, there := w.paths[path]; there {
		delete(w.paths, path)
		w.bytes -= bytesOf(path)
		w.owner.bytes.Add(-bytesOf(path))
	}
	if len(w.paths) == 0 && w.peak > keptRoom {
		w.paths, w.peak = nil, 0
	}
	w.mu.Unlock()
}

// Remove takes away those watches of w on path that kind names and reports
// whether there was one (DataTree.removeWatch; the protocol's NOWATCHER when
// not). An unknown kind removes nothing.
func (m *Manager) Remove(w *Watcher, path string, kind znode.WatcherType) bool {
	s := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.paths[path].get(w)
	to := from &^ selects(kind)
	if to == from {
		return false
	}
	s.setLocked(path, w, from, to)
	if to == 0 {
		m.armed.Add(-1)
		w.forget(path)
	}
	return true
}

// Contains reports whether w has a watch on path that kind names
// (DataTree.containsWatcher); false for an unknown kind.
func (m *Manager) Contains(w *Watcher, path string, kind znode.WatcherType) bool {
	s := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths[path].get(w)&selects(kind) != 0
}

// Drop removes all watches of a connection that has gone; Add refuses it from
// now on. A second Drop does nothing.
func (m *Manager) Drop(w *Watcher) {
	w.mu.Lock()
	paths := w.paths
	m.bytes.Add(-w.bytes)
	w.paths, w.bytes, w.dropped = nil, 0, true
	w.mu.Unlock()
	for path := range paths {
		s := m.shard(path)
		s.mu.Lock()
		// A Trigger or a Remove may have been here since.
		if from := s.paths[path].get(w); from != 0 {
			s.setLocked(path, w, from, 0)
			m.armed.Add(-1)
		}
		s.mu.Unlock()
	}
}

// countData follows the watcher's paths in the data table, and by it how many
// connections have any.
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

// countRecursive follows the recursive watches by depth, so that Trigger looks
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
