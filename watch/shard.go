package watch

import (
	"iter"
	"maps"
	"strings"
	"sync"

	"github.com/zk-lite/zk-lite/znode"
)

// shardCount stripes the paths over locks, so that connections that set watches
// on different paths seldom contend. A power of two.
const shardCount = 64

// shard is one stripe of the paths. A path's whole set of watchers, of both
// tables, is in one shard.
type shard struct {
	mu sync.Mutex // protects the fields below

	paths     map[string]watchers
	peak      int   // most entries that paths has had since it was made
	dataPairs int64 // (watcher, path) pairs in the data table
	pairs     int64 // pairs in the data table plus pairs in the child table
	dataPaths int64 // paths with a watcher in the data table
}

// modes is the set of modes that one watcher holds on one path.
type modes uint8

const (
	hasData modes = 1 << iota
	hasChild
	hasPersistent
	hasRecursive

	oneShot    = hasData | hasChild
	dataTable  = hasData | hasPersistent | hasRecursive
	childTable = hasChild | hasPersistent
)

// modesOf returns 0 for an invalid mode.
func modesOf(m Mode) modes {
	if m < Data || m > Recursive {
		return 0
	}
	return 1 << (m - Data)
}

// selects returns the set of modes that t selects in removeWatches and checkWatches
// (DataTree.removeWatch and containsWatcher); 0 for an unknown type.
func selects(t znode.WatcherType) modes {
	switch t {
	case znode.WatcherChildren:
		return hasChild
	case znode.WatcherData:
		return hasData
	case znode.WatcherAny:
		return dataTable | childTable
	case znode.WatcherPersistent:
		return hasPersistent
	case znode.WatcherRecursive:
		return hasRecursive
	}
	return 0
}

// in returns 1 if the set has a mode of the table, else 0, to count members.
func (k modes) in(table modes) int64 {
	if k&table != 0 {
		return 1
	}
	return 0
}

func (k modes) list() (modes []Mode) {
	for m := Data; m <= Recursive; m++ {
		if k&modesOf(m) != 0 {
			modes = append(modes, m)
		}
	}
	return modes
}

// watchers is the set of watchers of one path. Most paths have a single one,
// which is kept in place; the map costs several hundred bytes and is made for
// the second. Invariant: group != nil if and only if one == nil.
type watchers struct {
	one   *Watcher
	group *group
	modes modes // of one
}

// group is the set of two or more watchers of a path. (It may shrink below two
// again; it is not converted back.)
type group struct {
	modes     map[*Watcher]modes
	data      int // members in the data table
	child     int // members in the child table
	recursive int // members with a recursive watch
}

func (g *group) count(k modes, by int) {
	g.data += by * int(k.in(dataTable))
	g.child += by * int(k.in(childTable))
	g.recursive += by * int(k.in(hasRecursive))
}

// has reports whether any member is in the table; hasRecursive selects the
// recursive watches.
func (g *group) has(table modes) bool {
	return table&hasData != 0 && g.data > 0 || table&hasChild != 0 && g.child > 0 ||
		table == hasRecursive && g.recursive > 0
}

// get returns w's set of modes, 0 when it has none.
func (ws watchers) get(w *Watcher) modes {
	if ws.group != nil {
		return ws.group.modes[w]
	}
	if ws.one == w {
		return ws.modes
	}
	return 0
}

// dataWatchers returns how many watchers the set has in the data table.
func (ws watchers) dataWatchers() int {
	if ws.group != nil {
		return ws.group.data
	}
	return int(ws.modes.in(dataTable))
}

// size returns how many watchers the set has.
func (ws watchers) size() int {
	switch {
	case ws.group != nil:
		return len(ws.group.modes)
	case ws.one != nil:
		return 1
	}
	return 0
}

// setLocked changes the set of modes of w on path from one value to another,
// and updates the counters. It does not touch w's own index.
func (s *shard) setLocked(path string, w *Watcher, from, to modes) {
	ws := s.paths[path]
	before := ws.dataWatchers()
	ws = ws.with(w, from, to)
	if ws.one == nil && ws.group == nil {
		delete(s.paths, path)
		if len(s.paths) == 0 && s.peak > keptRoom {
			s.paths, s.peak = nil, 0
		}
	} else {
		if s.paths == nil {
			s.paths = make(map[string]watchers)
		}
		s.paths[path] = ws
		s.peak = max(s.peak, len(s.paths))
	}
	s.countLocked(from, to, before, ws.dataWatchers())
	w.countData(to.in(dataTable) - from.in(dataTable))
	w.owner.countRecursive(path, to.in(hasRecursive)-from.in(hasRecursive))
}

// with returns the set after w's modes change from one value to another.
func (ws watchers) with(w *Watcher, from, to modes) watchers {
	if g := ws.group; g != nil {
		g.count(from, -1)
		g.count(to, +1)
		if to != 0 {
			g.modes[w] = to
		} else if delete(g.modes, w); len(g.modes) == 0 {
			return watchers{}
		}
		return ws
	}
	switch {
	case to == 0:
		return watchers{}
	case ws.one == nil || ws.one == w:
		return watchers{one: w, modes: to}
	}
	g := &group{modes: map[*Watcher]modes{ws.one: ws.modes, w: to}}
	g.count(ws.modes, +1)
	g.count(to, +1)
	return watchers{group: g}
}

// countLocked updates the counters for one change of a pair. before and after
// are the path's watchers in the data table.
func (s *shard) countLocked(from, to modes, before, after int) {
	data := to.in(dataTable) - from.in(dataTable)
	s.dataPairs += data
	s.pairs += data + to.in(childTable) - from.in(childTable)
	switch {
	case before == 0 && after > 0:
		s.dataPaths++
	case before > 0 && after == 0:
		s.dataPaths--
	}
}

// all iterates over the set.
func (ws watchers) all() iter.Seq2[*Watcher, modes] {
	if ws.group != nil {
		return maps.All(ws.group.modes)
	}
	return func(yield func(*Watcher, modes) bool) {
		if ws.one != nil {
			yield(ws.one, ws.modes)
		}
	}
}

// Notification is one watch event for the connections. Every watcher of one
// (type, path) of a Trigger gets the same pointer.
type Notification struct {
	Type znode.EventType
	Path string
	Zxid znode.Zxid
	// ACL must grant READ before the client may learn of the event: the znode's
	// own, or the parent's for ChildrenChanged. The Sink checks it; a one-shot
	// watch is consumed in any case (ZooKeeper's NIOServerCnxn.process).
	// Shared: do not modify.
	ACL []znode.ACL
	// Frame is a slot in which the first Sink may store the encoded event for
	// the others, so that a thousand watchers of a znode encode it once. Only
	// Notify may write it; its target is immutable afterwards.
	Frame []byte
}

// Sink receives the notifications of one connection.
type Sink interface {
	// Notify handles one notification. Trigger calls it without a lock of the
	// Manager; it must not block.
	Notify(n *Notification)
}

// maxKeptMatches bounds the buffer that Trigger keeps between calls for the
// watchers it chose: 512 KiB of pointers. A wider fan-out allocates each time.
const maxKeptMatches = 1 << 16

// trigger is the state of Manager.Trigger, used by one goroutine at a time.
type trigger struct {
	// round numbers the notifications; a Watcher marked with it is already
	// chosen for the current one, through any table or ancestor.
	round   uint64
	matched []*Watcher
}

// Trigger notifies all watchers that an edit of the tree concerns. It removes the
// one-shot watches that fire, calls each watcher's Notify at most once for each
// (type, path), and has finished when it returns: ev is not kept. It never fails.
func (m *Manager) Trigger(ev *znode.Event) {
	if m.armed.Load() == 0 {
		return
	}
	t := &m.trigger
	t.round++
	m.matchAncestors(ev.Path)
	switch ev.Type {
	case znode.EventDeleted:
		// Both tables, as one round: a connection in both gets one copy.
		m.match(ev.Path, dataTable|childTable, oneShot)
	case znode.EventCreated, znode.EventDataChanged:
		m.match(ev.Path, dataTable, hasData)
	}
	m.deliver(ev.Type, ev.Path, ev.Zxid, ev.ACL)
	if ev.Type == znode.EventDataChanged || ev.Path == "/" {
		return
	}
	parent := znode.Parent(ev.Path)
	t.round++
	m.match(parent, childTable, hasChild)
	m.deliver(znode.EventChildrenChanged, parent, ev.Zxid, ev.ParentACL)
}

// match chooses the watchers of path in a table for the current notification, and
// removes the modes in consumed from them.
func (m *Manager) match(path string, table, consumed modes) {
	s := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	ws := s.paths[path]
	if ws.group == nil {
		m.matchOne(s, path, ws.one, ws.modes, table, consumed)
		return
	}
	if !ws.group.has(table) {
		return // a thousand child watches cost a setData nothing
	}
	for w, k := range ws.group.modes {
		m.matchOne(s, path, w, k, table, consumed)
	}
}

// matchOne is match for w, whose modes on path are k; it is chosen once per
// notification. s is path's shard, locked.
func (m *Manager) matchOne(s *shard, path string, w *Watcher, k, table, consumed modes) {
	if k&table == 0 {
		return
	}
	if t := &m.trigger; w.mark != t.round {
		w.mark = t.round
		t.matched = append(t.matched, w)
	}
	to := k &^ consumed
	if to == k {
		return
	}
	s.setLocked(path, w, k, to)
	if to == 0 {
		m.armed.Add(-1)
		w.forget(path)
	}
}

// matchAncestors chooses the recursive watchers above path. Going down from
// the root it visits only depths at which any recursive watch exists.
func (m *Manager) matchAncestors(path string) {
	if path == "/" {
		return
	}
	if m.recursive[0].Load() > 0 {
		m.match("/", hasRecursive, 0)
	}
	for end, d := 0, 1; ; d++ {
		i := strings.IndexByte(path[end+1:], '/')
		if i < 0 {
			return
		}
		end += 1 + i
		if m.recursive[min(d, depths-1)].Load() > 0 {
			m.match(path[:end], hasRecursive, 0)
		}
	}
}

// deliver passes one notification to the chosen watchers and forgets them. No
// lock is held.
func (m *Manager) deliver(typ znode.EventType, path string, zxid znode.Zxid, acl []znode.ACL) {
	t := &m.trigger
	if len(t.matched) == 0 {
		return
	}
	n := &Notification{Type: typ, Path: path, Zxid: zxid, ACL: acl}
	for i, w := range t.matched {
		t.matched[i] = nil // must not keep a connection alive
		w.sink.Notify(n)
	}
	t.matched = t.matched[:0]
	if cap(t.matched) > maxKeptMatches {
		t.matched = nil
	}
}
