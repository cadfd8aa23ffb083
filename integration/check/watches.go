package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Watches checks the events of each connection: they arrive in the order of zxids among themselves
// and among the answers, before any answer that shows the change or a later one, none is lost while
// the connection lives, none arrives twice, and a one-shot watch fires once.
//
// With Changes it knows which events a connection must get at which place, and compares. Without, it
// checks the zxids of events that have one, that a one-shot watch fires no more often than it was
// set, and that no read shows data newer than a watched read before the event has arrived.
//
// Guarantees: Events before data, No missed change.
func Watches(h *History) []Violation {
	var f findings
	for _, list := range deliveries(h) {
		if h.Changes != nil {
			w := watcher{f: &f, changes: h.Changes, modes: map[watchKey]bool{}}
			w.run(list)
		} else {
			f.withoutTruth(list)
		}
	}
	return f.list
}

// delivery is an answer or an event.
type delivery struct {
	arrival int
	op      *Op
	event   *Event
}

// deliveries are those of each connection, in the order of arrival.
func deliveries(h *History) map[int][]delivery {
	m := map[int][]delivery{}
	for i := range h.Ops {
		if o := &h.Ops[i]; o.Outcome != Unknown && o.Arrival > 0 {
			m[o.Conn] = append(m[o.Conn], delivery{arrival: o.Arrival, op: o})
		}
	}
	for i := range h.Events {
		e := &h.Events[i]
		m[e.Conn] = append(m[e.Conn], delivery{arrival: e.Arrival, event: e})
	}
	for _, list := range m {
		slices.SortFunc(list, func(a, b delivery) int { return cmp.Compare(a.arrival, b.arrival) })
	}
	return m
}

type watchKey struct {
	path string
	mode WatchMode
}

// watcher is the model of one connection's watches.
type watcher struct {
	f       *findings
	changes []Change
	next    int // the first change that the connection has not been brought past
	modes   map[watchKey]bool
	due     []notice // of changes before next, not yet seen to be delivered
}

type notice struct {
	typ  znode.EventType
	path string
	zxid znode.Zxid
}

func (w *watcher) run(list []delivery) {
	started := false
	for _, d := range list {
		if d.event != nil {
			if !w.expect(d.event) {
				return // from here on everything would be wrong
			}
			continue
		}
		o := d.op
		if o.Zxid == 0 {
			continue
		}
		if !started { // nothing is watched yet
			w.next, _ = slices.BinarySearchFunc(w.changes, o.Zxid+1,
				func(c Change, z znode.Zxid) int { return cmp.Compare(c.Zxid, z) })
			started = true
		}
		for w.next < len(w.changes) && w.changes[w.next].Zxid <= o.Zxid {
			w.apply()
		}
		if len(w.due) > 0 {
			w.f.add("Events before data", "connection %d was to get %v %s of %v before %s", o.Conn,
				w.due[0].typ, w.due[0].path, w.due[0].zxid, o.say())
			return
		}
		if w.next > 0 && w.changes[w.next-1].Zxid > o.Zxid {
			w.f.add("Events before data", "%s came behind an event of %v", o.say(), w.changes[w.next-1].Zxid)
			return
		}
		if o.leavesWatch() {
			w.modes[watchKey{o.Path, o.Watch}] = true
		}
	}
}

// leavesWatch reports whether the answer means that a watch was set: a failed read sets none,
// except for exists, which waits for the znode.
func (o *Op) leavesWatch() bool {
	return o.Watch != NoWatch && (o.Outcome == OK || o.Kind == Exists && o.Code == znode.ErrNoNode)
}

// expect compares an event with the next that is due.
func (w *watcher) expect(e *Event) bool {
	for len(w.due) == 0 && w.next < len(w.changes) {
		w.apply()
	}
	if len(w.due) == 0 {
		w.f.add("Events before data", "connection %d got %v %s of %v at %v, for which there is no watch "+
			"(or it has fired before)", e.Conn, e.Type, e.Path, e.Zxid, e.At)
		return false
	}
	want := w.due[0]
	w.due = w.due[1:]
	if want.typ != e.Type || want.path != e.Path || e.Zxid != 0 && e.Zxid != want.zxid {
		w.f.add("No missed change", "connection %d got %v %s of %v at %v; next was to come %v %s of %v",
			e.Conn, e.Type, e.Path, e.Zxid, e.At, want.typ, want.path, want.zxid)
		return false
	}
	return true
}

// apply brings the connection past the next change.
func (w *watcher) apply() {
	c := &w.changes[w.next]
	w.next++
	parent := parentOf(c.Path)
	if c.Path == "/" {
		return
	}
	data := w.fire(c.Path, DataWatch) || w.modes[watchKey{c.Path, Persistent}] || w.recursive(c.Path)
	if c.Type == znode.EventDeleted {
		// A client that watches both gets one event, which uses up both watches.
		data = w.fire(c.Path, ChildWatch) || data
	}
	if data {
		w.due = append(w.due, notice{c.Type, c.Path, c.Zxid})
	}
	if c.Type == znode.EventDataChanged {
		return
	}
	if w.fire(parent, ChildWatch) || w.modes[watchKey{parent, Persistent}] {
		w.due = append(w.due, notice{znode.EventChildrenChanged, parent, c.Zxid})
	}
}

// fire uses up a one-shot watch.
func (w *watcher) fire(path string, mode WatchMode) bool {
	k := watchKey{path, mode}
	armed := w.modes[k]
	delete(w.modes, k)
	return armed
}

func (w *watcher) recursive(path string) bool {
	for p := path; ; p = parentOf(p) {
		if w.modes[watchKey{p, Recursive}] {
			return true
		}
		if p == "/" {
			return false
		}
	}
}

// withoutTruth checks the answers and events against each other.
func (f *findings) withoutTruth(list []delivery) {
	var high znode.Zxid
	armed := map[string]znode.Zxid{} // one-shot data watches: mzxid of the read that left it
	left := map[string]int{}         // one-shot watches of any kind that have not fired
	lasting := map[string]bool{}
	for _, d := range list {
		if e := d.event; e != nil {
			if e.Zxid > 0 && e.Zxid < high {
				f.add("Events before data", "connection %d got %v %s of %v at %v, and had seen %v", e.Conn,
					e.Type, e.Path, e.Zxid, e.At, high)
			}
			high = max(high, e.Zxid)
			if left[e.Path] <= 0 && !covered(lasting, e.Path) {
				f.add("Events before data", "connection %d got %v %s at %v, for which there is no watch "+
					"(or it has fired before)", e.Conn, e.Type, e.Path, e.At)
			}
			left[e.Path]--
			if e.Type == znode.EventDeleted {
				left[e.Path] = 0 // data and child watch together
			}
			delete(armed, e.Path)
			continue
		}
		o := d.op
		high = max(high, o.Zxid)
		if m, ok := armed[o.Path]; ok && o.Kind.Read() && o.Kind != Children && o.Outcome == OK && o.Stat.Mzxid > m {
			f.add("Events before data", "%s shows mzxid %v; the watch left at %v has not fired", o.say(),
				o.Stat.Mzxid, m)
		}
		switch {
		case !o.leavesWatch():
		case o.Watch == Persistent || o.Watch == Recursive:
			lasting[o.Path] = true
		case o.Watch == DataWatch:
			if _, ok := armed[o.Path]; !ok {
				left[o.Path]++
				armed[o.Path] = o.Stat.Mzxid
			}
		default:
			left[o.Path]++ // may be one that exists already: the bound is an upper one
		}
	}
}

// covered reports whether there is a persistent watch on a znode or above it.
func covered(lasting map[string]bool, path string) bool {
	for p := path; ; p = p[:strings.LastIndexByte(p, '/')] {
		if lasting[p] || lasting["/"] {
			return true
		}
		if strings.Count(p, "/") <= 1 {
			return false
		}
	}
}
