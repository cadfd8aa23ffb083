package watch

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/znode"
)

// shardCount stripes the paths over locks, so that connections that set watches
// on different paths seldom contend, and a table that grows stops few of them,
// not for long. A power of two.
const shardCount = 256

// shard is one stripe of the paths. A path's whole set of watchers, of both
// tables, is in one shard.
type shard struct {
	mu sync.Mutex // protects the fields below

	paths     table
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

// setLocked changes the set of modes of w on an entry's path from one value to
// another, and updates the counters. It does not touch w's own index.
func (s *shard) setLocked(e *entry, w *Watcher, from, to modes) {
	before := e.dataWatchers()
	e.set(w, from, to)
	if e.size() == 0 {
		s.paths.remove(e)
	}
	data := to.in(dataTable) - from.in(dataTable)
	s.dataPairs += data
	s.pairs += data + to.in(childTable) - from.in(childTable)
	switch after := e.dataWatchers(); {
	case before == 0 && after > 0:
		s.dataPaths++
	case before > 0 && after == 0:
		s.dataPaths--
	}
	w.countData(data)
	w.owner.countRecursive(e.path, to.in(hasRecursive)-from.in(hasRecursive))
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

	frame atomic.Pointer[[]byte]
}

// Frame returns the event as encode encodes it, once for all watchers. (Twice, if two ask at the same moment.)
func (n *Notification) Frame(encode func(*Notification) []byte) []byte {
	b := n.frame.Load()
	if b == nil {
		made := encode(n)
		b = &made
		n.frame.Store(b)
	}
	return *b
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
	// number counts: each notification has a number of its own, the last, and before it one for each of its fanouts. A
	// Watcher is marked with the last number that has reached it. It has been notified if that is one of the
	// notification's, through any table or ancestor.
	number  uint64
	matched []*Watcher // of the current notification; some may be in it twice
	fanouts []*fanout  // of it as well
}

// Trigger notifies all watchers that an edit of the tree concerns. It removes the
// one-shot watches that fire, and calls each watcher's Notify at most once for each
// (type, path). It has finished when it returns, but for what Fanout allows. It never fails.
func (m *Manager) Trigger(ev *znode.Event) {
	if m.armed.Load() == 0 {
		return
	}
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
	m.match(parent, childTable, hasChild)
	m.deliver(znode.EventChildrenChanged, parent, ev.Zxid, ev.ParentACL)
}

// match chooses the watchers of path in a table for the current notification, and
// removes the modes in consumed from them.
func (m *Manager) match(path string, table, consumed modes) {
	s, hash := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.paths.find(hash, path)
	if e == nil || !e.has(table) {
		return // a thousand child watches cost a setData nothing
	}
	if e.group != nil && m.fanout > 0 && e.group.in(table) >= m.fanout {
		m.takeLocked(s, e, table, consumed)
		return
	}
	t := &m.trigger
	before := len(t.matched)
	for w, k := range e.all() {
		if k&table != 0 {
			t.matched = append(t.matched, w)
		}
	}
	for _, w := range t.matched[before:] {
		m.removeLocked(s, e, w, consumed)
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
	if len(t.matched) == 0 && len(t.fanouts) == 0 {
		return
	}
	n := &Notification{Type: typ, Path: path, Zxid: zxid, ACL: acl}
	start := t.number
	t.leave(n, &m.backlog)
	t.number++
	for i, w := range t.matched {
		t.matched[i] = nil // must not keep a connection alive
		w.notify(n, start, t.number)
	}
	t.matched = t.matched[:0]
	if cap(t.matched) > maxKeptMatches {
		t.matched = nil
	}
}
