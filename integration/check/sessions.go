package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/znode"
)

// Sessions checks the guarantees to each single client, also when it moves from server to server:
// answers arrive in the order of the requests; zxids never go back; a client's writes take effect in
// the order in which it sent them; a read is never older than what the client has seen or written
// before. Over all clients: a write that begins after another was answered has the higher zxid, and a
// read after a sync shows it. With Changes, every read is compared with the tree at the zxid of its
// answer.
//
// Guarantees: Order, Zxids, Single system image.
func Sessions(h *History) []Violation {
	var f findings
	for _, ops := range byClient(h) {
		f.connections(ops)
		f.neverBack(ops)
	}
	f.realTime(h)
	if h.Changes != nil {
		f.replay(h)
	}
	return f.list
}

// byClient gathers each client's answered operations in the order of the answers.
func byClient(h *History) map[int][]*Op {
	m := map[int][]*Op{}
	for i := range h.Ops {
		if o := &h.Ops[i]; o.Outcome != Unknown {
			m[o.Client] = append(m[o.Client], o)
		}
	}
	for _, ops := range m {
		slices.SortFunc(ops, func(a, b *Op) int {
			return cmp.Or(cmp.Compare(a.Conn, b.Conn), cmp.Compare(a.Arrival, b.Arrival))
		})
	}
	return m
}

// connections checks that answers keep the order of the requests, and that writes do.
func (f *findings) connections(ops []*Op) {
	var last, write *Op
	for _, o := range ops {
		if last != nil && o.Conn == last.Conn && o.Sent <= last.Sent {
			f.add("Order", "%s was sent before, and answered after, %s", o.say(), last.say())
		}
		last = o
		if !o.Kind.Write() || o.Outcome != OK {
			continue
		}
		if write != nil && o.Zxid <= write.Zxid {
			f.add("Order", "%s took effect before the earlier %s", o.say(), write.say())
		}
		write = o
	}
}

// neverBack checks that a client's view only moves forward.
func (f *findings) neverBack(ops []*Op) {
	var high *Op
	changed := map[string]*Op{} // by path: the newest data seen or written
	mzxid := func(o *Op) znode.Zxid {
		if o.Kind.Read() {
			return o.Stat.Mzxid
		}
		return o.Zxid
	}
	for _, o := range ops {
		if o.Zxid == 0 {
			continue
		}
		if high != nil && o.Zxid < high.Zxid {
			f.add("Single system image", "%s shows an older state than %s", o.say(), high.say())
		} else {
			high = o
		}
		data := o.Kind == Get || o.Kind == Exists || o.Kind == Create || o.Kind == Set
		if o.Outcome != OK || !data {
			continue
		}
		path := o.Path
		if o.Created != "" {
			path = o.Created
		}
		if seen := changed[path]; seen != nil && mzxid(o) < mzxid(seen) {
			f.add("Single system image", "%s (mzxid %v) shows older data than %s (mzxid %v)",
				o.say(), mzxid(o), seen.say(), mzxid(seen))
			continue
		}
		changed[path] = o
	}
}

// realTime checks zxids against the clock.
func (f *findings) realTime(h *History) {
	var answered, called []*Op
	owner := map[znode.Zxid]*Op{}
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Outcome != OK || o.Zxid == 0 {
			continue
		}
		if o.Kind.Write() {
			if other := owner[o.Zxid]; other != nil {
				f.add("Zxids", "%s and %s have the same zxid", o.say(), other.say())
			}
			owner[o.Zxid] = o
			answered = append(answered, o)
		}
		if o.Kind.Write() || o.Kind == Sync || o.Synced {
			called = append(called, o)
		}
	}
	slices.SortFunc(answered, func(a, b *Op) int { return cmp.Compare(a.Return, b.Return) })
	slices.SortFunc(called, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	var high *Op
	next := 0
	for _, o := range called {
		for ; next < len(answered) && answered[next].Return < o.Call; next++ {
			if high == nil || answered[next].Zxid > high.Zxid {
				high = answered[next]
			}
		}
		if high == nil {
			continue
		}
		switch {
		case o.Kind.Write() && o.Zxid <= high.Zxid:
			f.add("Zxids", "%s began after %s was answered, and has no higher zxid", o.say(), high.say())
		case o.Zxid < high.Zxid:
			f.add("Linearizable writes", "%s does not show %s, which was answered before", o.say(), high.say())
		}
	}
}

// replay compares reads with the tree as it was at their zxid.
func (f *findings) replay(h *History) {
	t := newTruth(h.Changes)
	for i := range h.Ops {
		o := &h.Ops[i]
		if !o.Kind.Read() || o.Outcome == Unknown || o.Zxid == 0 {
			continue
		}
		m := t.at(o.Path, o.Zxid)
		switch {
		case o.Outcome == Failed && o.Code != znode.ErrNoNode:
		case o.Outcome == Failed && m.exists:
			f.add("Single system image", "%s: the znode exists since %v", o.say(), m.zxid)
		case o.Outcome == Failed:
		case o.Kind == Children && m.exists == (len(t.paths[o.Path]) > 0):
			names := slices.Sorted(slices.Values(o.Names))
			if want := t.names(o.Path, o.Zxid); !slices.Equal(names, want) {
				f.add("Single system image", "%s: shows %v, then there were %v", o.say(), names, want)
			}
		case !m.exists && len(t.paths[o.Path]) > 0:
			f.add("Single system image", "%s: there was no such znode then", o.say())
		case !m.exists: // made before the record began
		case o.Kind == Get && (o.Data != m.value || o.Stat.Mzxid != m.zxid):
			f.add("Single system image", "%s: shows %q of %v, then it was %q of %v", o.say(), o.Data,
				o.Stat.Mzxid, m.value, m.zxid)
		case o.Kind == Exists && o.Stat.Mzxid != m.zxid:
			f.add("Single system image", "%s: shows mzxid %v, then it was %v", o.say(), o.Stat.Mzxid, m.zxid)
		}
	}
}

// Once checks, by the values that writes carry, that an acknowledged write has happened exactly once,
// a refused one never, and one without an answer at most once, and not after the client had resumed
// its session or the session had ended. Without Changes only Final is checked.
//
// Guarantees: Once, Durability, Atomicity.
func Once(h *History) []Violation {
	var f findings
	times := map[string][]Change{}
	whole := h.Changes != nil
	for _, c := range h.Changes {
		if c.Type != znode.EventDeleted && c.Value != "" {
			times[c.Value] = append(times[c.Value], c)
		}
	}
	if !whole {
		for _, z := range h.Final {
			if z.Value != "" {
				times[z.Value] = append(times[z.Value], Change{Path: z.Path, Value: z.Value})
			}
		}
	}
	over := sessionFences(h)
	for i := range h.Ops {
		o := &h.Ops[i]
		if !o.Kind.Write() {
			continue
		}
		parts := o.parts()
		happened, all := 0, 0
		for k := range parts {
			if parts[k].Value == "" || parts[k].Kind != Create && parts[k].Kind != Set {
				continue
			}
			all++
			n := times[parts[k].Value]
			f.happened(o, &parts[k], n, whole)
			if len(n) > 0 {
				happened++
				f.notAfter(o, n[0], over)
			}
		}
		if whole && happened > 0 && happened < all {
			f.add("Atomicity", "only a part of %s has happened", o.say())
		}
	}
	return f.list
}

func (f *findings) happened(o, part *Op, n []Change, whole bool) {
	switch {
	case len(n) > 1:
		f.add("Once", "%s has happened %d times: %v", o.say(), len(n), n)
	case o.Outcome == Failed && len(n) > 0:
		f.add("Once", "%s was refused and has happened, as %v", o.say(), n[0])
	case o.Outcome == OK && len(n) == 0 && whole:
		f.add("Durability", "%s was acknowledged; writing %q is not in the log", o.say(), part.Value)
	case o.Outcome == OK && len(n) == 1 && whole && o.Zxid != 0 && n[0].Zxid != o.Zxid:
		f.add("Zxids", "%s has happened at %v", o.say(), n[0].Zxid)
	}
}

// fence is a moment from which on nothing of a session's earlier connections may happen.
type fence struct {
	conn int
	zxid znode.Zxid
	at   time.Duration
}

func sessionFences(h *History) map[znode.SessionID][]fence {
	m := map[znode.SessionID][]fence{}
	for i := range h.Ops {
		o := &h.Ops[i]
		if o.Kind == AttachSession && o.Outcome == OK && o.Zxid != 0 {
			m[o.Session] = append(m[o.Session], fence{o.Conn, o.Zxid, o.Return})
		}
	}
	return m
}

func (f *findings) notAfter(o *Op, c Change, over map[znode.SessionID][]fence) {
	if o.Outcome != Unknown || c.Zxid == 0 {
		return
	}
	for _, x := range over[o.Session] {
		if x.conn > o.Conn && c.Zxid > x.zxid {
			f.add("Once", "%s happened at %v, after the session was taken up again (connection %d, "+
				"zxid %v at %v)", o.say(), c.Zxid, x.conn, x.zxid, x.at)
			return
		}
	}
}
