package watch

import (
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

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
// (type, path), and has finished when it returns. It never fails.
func (m *Manager) Trigger(ev znode.Event) {
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
