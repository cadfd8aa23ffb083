package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/check"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// watched is a watch that a client believes to have, on whatever server.
type watched struct {
	path string
	mode check.WatchMode
}

// leftLocked notes what an answer has left; the value says whether the znode was missing (exists).
func (x *connection) leftLocked(o *check.Op) {
	if o.Watch == check.NoWatch || o.Outcome != check.OK && (o.Kind != check.Exists || o.Code != znode.ErrNoNode) {
		return
	}
	x.c.watches[watched{o.Path, o.Watch}] = o.Code == znode.ErrNoNode
}

// firedLocked notes what an event has used up.
func (x *connection) firedLocked(typ znode.EventType, path string) {
	if typ != znode.EventChildrenChanged {
		delete(x.c.watches, watched{path, check.DataWatch})
	}
	if typ == znode.EventChildrenChanged || typ == znode.EventDeleted {
		delete(x.c.watches, watched{path, check.ChildWatch})
	}
}

// rewatch sets a client's watches again after it has reconnected, as setWatches does: for each, the server
// compares what it has with the last zxid that the client had seen, and tells at once what was
// missed, or leaves the watch. It implements server.Op.
type rewatch struct {
	x     *connection
	after znode.Zxid // the last one that the client had seen
	list  []watched
	first int // the place of the first request
	done  chan struct{}
}

// setAgain is one watch, and what the server said.
type setAgain struct {
	client, conn int
	watched
	missing bool // it waited for the znode
	after   znode.Zxid
	zxid    znode.Zxid      // of the state that the server looked at
	told    znode.EventType // 0: nothing was missed
}

// again gathers the watches that were set again.
type again struct {
	mu   sync.Mutex // protects the field below
	list []setAgain
}

// setWatches sets all watches again; or the client has lost interest, as a new program would.
func (c *client) setWatches(x *connection, after znode.Zxid) bool {
	if len(c.watches) == 0 || c.rng.IntN(4) == 0 {
		clear(c.watches)
		return true
	}
	op := &rewatch{x: x, after: after, done: make(chan struct{}), first: x.sent + 1}
	for k := range c.watches {
		op.list = append(op.list, k)
	}
	slices.SortFunc(op.list, func(a, b watched) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.mode, b.mode))
	})
	x.sent += len(op.list)
	if !x.reach() || x.sc.Read(op) != nil {
		return false
	}
	return x.await(&call{x: x, done: op.done})
}

// Done implements server.Op. It is never called: this is a read.
func (r *rewatch) Done(*server.View, *state.Result) { panic("unreachable: setWatches is a read") }

// Weight implements server.Op.
func (r *rewatch) Weight(*server.View) int { return 0 }

// Read implements server.Op.
func (r *rewatch) Read(v *server.View) {
	x, c := r.x, r.x.c
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.deafLocked() {
		return
	}
	x.seen = max(x.seen, v.Zxid())
	for i, k := range r.list {
		s := setAgain{c.id, x.number, k, c.watches[k], r.after, v.Zxid(), 0}
		stat, code := v.Tree().Exists(k.path, nil)
		s.told = missed(&s, stat, code)
		c.w.again.add(s)
		if s.told != 0 {
			x.firedLocked(s.told, k.path)
			continue
		}
		if err := v.Watches().Add(x.sc.Watcher(), k.path, watchModes[k.mode]); err != nil {
			panic(err) // the limit is far away
		}
		// For the checkers, it is a read that shows this state and leaves the watch.
		x.arrived++
		o := &check.Op{
			Client: c.id, Conn: x.number, Server: x.life.i, Session: c.session, Path: k.path, Watch: k.mode,
			Kind: check.Exists, Sent: r.first + i, Arrival: x.arrived, Call: c.w.now(), Return: c.w.now(),
			Zxid: v.Zxid(), Stat: stat, Code: code,
		}
		switch k.mode {
		case check.ChildWatch:
			names, _, _ := v.Tree().Children(k.path, nil)
			o.Kind, o.Names = check.Children, slices.Clone(names)
		case check.Persistent, check.Recursive:
			o.Kind, o.Code = check.AddWatch, znode.OK
		}
		c.w.record.call(o)
		o.Outcome = check.OK
		if o.Code != znode.OK {
			o.Outcome = check.Failed
		}
	}
	close(r.done)
}

// missed is what a server tells about a watch that is set again (ZooKeeper's DataTree.setWatches).
func missed(s *setAgain, stat znode.Stat, code znode.Error) znode.EventType {
	switch {
	case s.mode == check.Persistent || s.mode == check.Recursive:
		return 0
	case s.missing && code == znode.OK:
		return znode.EventCreated
	case s.missing:
		return 0
	case code != znode.OK:
		return znode.EventDeleted
	case s.mode == check.DataWatch && stat.Mzxid > s.after:
		return znode.EventDataChanged
	case s.mode == check.ChildWatch && stat.Pzxid > s.after:
		return znode.EventChildrenChanged
	}
	return 0
}

func (a *again) add(s setAgain) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, s)
}

// judgeAgain compares what servers told about watches that were set again with what had happened to
// their znodes between the zxid that the client named and the state that the server had.
//
// Guarantee: No missed change.
func judgeAgain(a *again, h *check.History) (list []check.Violation) {
	changes := map[string][]check.Change{} // of a znode, and of its children
	for _, c := range h.Changes {
		changes[c.Path] = append(changes[c.Path], c)
		if c.Type != znode.EventDataChanged {
			parent := c.Path[:max(1, strings.LastIndexByte(c.Path, '/'))]
			changes[parent] = append(changes[parent], c)
		}
	}
	for _, s := range a.list {
		var stat znode.Stat
		code := znode.ErrNoNode
		for _, c := range changes[s.path] {
			switch {
			case c.Zxid > s.zxid:
			case c.Path != s.path:
				stat.Pzxid = c.Zxid
			case c.Type == znode.EventDeleted:
				code = znode.ErrNoNode
			case c.Type == znode.EventCreated:
				code, stat.Mzxid, stat.Pzxid = znode.OK, c.Zxid, c.Zxid
			default:
				stat.Mzxid = c.Zxid
			}
		}
		if want := missed(&s, stat, code); want != s.told {
			list = append(list, check.Violation{Guarantee: "No missed change", What: fmt.Sprintf(
				"client %d set its watch %+v again on connection %d, having seen %v, and was told %v by a server "+
					"at %v; to be told was %v", s.client, s.watched, s.conn, s.after, s.told, s.zxid, want)})
		}
		if s.zxid < s.after {
			list = append(list, check.Violation{Guarantee: "Single system image", What: fmt.Sprintf(
				"client %d had seen %v, and set its watches again at a server that was at %v", s.client, s.after, s.zxid)})
		}
	}
	return list
}
