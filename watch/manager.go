package watch

import (
	"errors"
	"fmt"
	"hash/maphash"
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
// changes it: at the measured size of a watch (below 200 bytes) a single client
// cannot take more than some 50 MB. A cache of a hundred thousand znodes fits.
const DefaultLimit = 1 << 18

// DefaultBytes bounds the memory of the watches of all watchers, unless Bytes changes it. Beyond it a watcher may still
// have watches of shareBytes, so that one that takes all the memory leaves something to each of the others. watchMemory
// estimates the memory of a watch without its path.
const (
	DefaultBytes = 1 << 30
	shareBytes   = 1 << 20
	watchMemory  = 192
)

// keptRoom bounds the entries of an emptied map that is kept for the next
// watch. A larger one is dropped, because a Go map never shrinks.
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

	trigger trigger // for Trigger only, which runs in one goroutine at a time
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
	mark      uint64       // the last round of Trigger that chose it; for Trigger only

	mu      sync.Mutex // protects the fields below
	paths   map[string]struct{}
	bytes   int64 // that they take
	peak    int   // most entries that paths has had since it was made
	dropped bool
}

// NewWatcher registers a connection, whose notifications go to s. It costs
// nothing until the first Add; call Drop when the connection has ended.
func (m *Manager) NewWatcher(s Sink) *Watcher { return &Watcher{sink: s, owner: m} }

// Sink returns the Sink that was given to NewWatcher, to name the watcher in a report.
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

// Add sets a watch of w on path. Adding a mode again changes nothing. Add keeps
// the path as it is, so it must be valid and must not pin a larger buffer.
// Errors: *LimitError, ErrDropped, and znode.ErrBadArguments for an invalid
// mode.
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

// remember adds path to the watcher's own index; the path's shard is locked.
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

// bytesOf estimates the memory of a watch on path.
func bytesOf(path string) int64 { return watchMemory + int64(len(path)) }

// forget removes path from the watcher's own index; the path's shard is locked.
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

// Remove removes the watches of w on path that kind selects, and reports
// whether there was one (DataTree.removeWatch; if not, the protocol's
// NOWATCHER). An unknown kind removes nothing.
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

// Contains reports whether w has a watch on path that kind selects
// (DataTree.containsWatcher); false for an unknown kind.
func (m *Manager) Contains(w *Watcher, path string, kind znode.WatcherType) bool {
	s := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths[path].get(w)&selects(kind) != 0
}

// Drop removes all watches of a connection that has ended; from now on Add
// refuses the watcher. A second Drop does nothing.
func (m *Manager) Drop(w *Watcher) {
	w.mu.Lock()
	paths := w.paths
	m.bytes.Add(-w.bytes)
	w.paths, w.bytes, w.dropped = nil, 0, true
	w.mu.Unlock()
	for path := range paths {
		s := m.shard(path)
		s.mu.Lock()
		// A Trigger or a Remove may have been here meanwhile.
		if from := s.paths[path].get(w); from != 0 {
			s.setLocked(path, w, from, 0)
			m.armed.Add(-1)
		}
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
