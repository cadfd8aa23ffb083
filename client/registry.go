package client

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// registry holds the watches of a client, by path. Client.mu protects it.
type registry struct {
	c     *Client
	paths map[string]*pathWatches
	// recursive counts the recursive watches. Without any, the ancestors of an
	// event's path need no look-up.
	recursive int
}

// The tables of a server that can have a connection for a path
// (DataTree.dataWatches and childWatches), one bit each.
const (
	armedData  = 1 << iota // until it fires
	armedChild             // until it fires
	armedStay              // persistent: until it is removed
)

// pathWatches is the state of one path. An entry exists while it has watches,
// or requests that may become watches.
type pathWatches struct {
	list    []*Watch
	pending int   // queued requests that set a watch if they succeed
	armed   uint8 // which watches the server has
}

func (k watchKind) armed() uint8 {
	switch k {
	case watchData, watchExist:
		return armedData
	case watchChild:
		return armedChild
	}
	return armedStay
}

func (r *registry) entryLocked(path string) *pathWatches {
	e := r.paths[path]
	if e == nil {
		e = new(pathWatches)
		r.paths[path] = e
	}
	return e
}

// expectLocked records that a request was queued that sets a watch.
func (r *registry) expectLocked(path string) { r.entryLocked(path).pending++ }

// settleLocked records the end of such a request: its watch is armed at the
// server or not.
func (r *registry) settleLocked(p *call, armed bool) {
	e := r.paths[p.full]
	e.pending--
	w := p.watch
	if armed {
		e.armed |= w.kind.armed()
		if p.abandoned {
			w.ended, w.err = true, ErrWatchCancelled
		}
		if !w.ended {
			r.addLocked(e, w)
		}
	}
	r.tidyLocked(p.full, e)
}

func (r *registry) addLocked(e *pathWatches, w *Watch) {
	w.index, w.listed = len(e.list), true
	e.list = append(e.list, w)
	if w.kind == watchRecursive {
		r.recursive++
	}
}

// unlistLocked takes w out of e.
func (r *registry) unlistLocked(e *pathWatches, w *Watch) {
	last := len(e.list) - 1
	e.list[w.index] = e.list[last]
	e.list[w.index].index = w.index
	e.list[last] = nil
	e.list = e.list[:last]
	w.listed = false
	if w.kind == watchRecursive {
		r.recursive--
	}
}

// removeLocked forgets a watch that has ended.
func (r *registry) removeLocked(w *Watch) {
	if e := r.paths[w.path]; e != nil && w.listed {
		r.unlistLocked(e, w)
		r.tidyLocked(w.path, e)
	}
}

// tidyLocked drops an entry that nothing refers to. If the server still has a watch for it,
// it asks the server to remove that. A request that sets a new watch comes later in the
// queue, so the removal cannot take it away.
func (r *registry) tidyLocked(path string, e *pathWatches) {
	if len(e.list) > 0 || e.pending > 0 {
		return
	}
	delete(r.paths, path)
	if e.armed != 0 && r.c.link != nil && !r.c.closing {
		// An internal request is never refused, and with the connection the
		// server's watches end, too.
		_ = r.c.pushLocked(newDisarmOp(r.c, path))
	}
}

// disconnectedLocked records that no server has a watch of this client.
func (r *registry) disconnectedLocked() {
	for _, e := range r.paths {
		e.armed = 0
	}
}

// fireLocked passes an event to the watches that it concerns (ZooKeeper
// Programmer's Guide, "Semantics of Watches").
func (r *registry) fireLocked(t EventType, path string, zxid znode.Zxid) {
	ev := Event{Type: t, Path: r.c.rel(path), Zxid: zxid}
	if e := r.paths[path]; e != nil {
		switch t {
		case EventDeleted:
			e.armed &^= armedData | armedChild
		case EventChildrenChanged:
			e.armed &^= armedChild
		default:
			e.armed &^= armedData
		}
		r.offerLocked(path, e, ev, func(w *Watch) bool { return w.kind.wants(t) })
	}
	if r.recursive == 0 || t == EventChildrenChanged {
		return
	}
	for at := path; at != "/" && r.recursive > 0; {
		at = znode.Parent(at)
		if e := r.paths[at]; e != nil {
			r.offerLocked(at, e, ev, func(w *Watch) bool { return w.kind == watchRecursive })
		}
	}
}

// wants reports whether a watch of kind k on a path gets an event of type t of
// that very path.
func (k watchKind) wants(t EventType) bool {
	switch k {
	case watchData, watchExist:
		return t != EventChildrenChanged
	case watchChild:
		return t == EventChildrenChanged || t == EventDeleted
	case watchRecursive:
		return t != EventChildrenChanged
	}
	return true
}

// offerLocked pushes ev to the watches of e that want it, and removes those
// that end with it. The order of the list does not matter.
func (r *registry) offerLocked(path string, e *pathWatches, ev Event, want func(*Watch) bool) {
	for i := 0; i < len(e.list); {
		w := e.list[i]
		if want(w) {
			w.pushLocked(ev)
		}
		if w.ended {
			r.unlistLocked(e, w)
		} else {
			i++
		}
	}
	r.tidyLocked(path, e)
}

// endAllLocked ends every watch, because the session or the client has ended.
func (r *registry) endAllLocked(cause error) {
	for path, e := range r.paths {
		for len(e.list) > 0 {
			w := e.list[len(e.list)-1]
			w.endLocked(cause)
			r.unlistLocked(e, w)
		}
		e.armed = 0
		r.tidyLocked(path, e)
	}
}

// newDisarmOp returns the operation that asks the server to remove its watch on a
// path without watches here.
func newDisarmOp(c *Client, path string) *op[wire.RemoveWatchesRequest, struct{}, *wire.RemoveWatchesRequest] {
	o := newOp[wire.RemoveWatchesRequest](c, wire.OpRemoveWatches, noResult)
	o.path, o.internal = path, true
	o.req = wire.RemoveWatchesRequest{Path: path, Type: znode.WatcherAny}
	return o
}

// restoreChunk bounds the paths of one setWatches, in bytes. It is the bound of
// ZooKeeper's own client (ClientCnxn.SET_WATCHES_MAX_LENGTH), and well below
// the servers' limit of a frame.
const restoreChunk = 128 << 10

// restoreOp sets some of the watches on a new connection. If none of them is
// persistent, it is a setWatches, which servers before 3.6 know.
type restoreOp struct {
	Pending[struct{}]
	req     wire.SetWatches2Request
	watches []*Watch
	bytes   int
}

func (op *restoreOp) request() wire.Request {
	if op.op == wire.OpSetWatches {
		return &op.req.SetWatchesRequest
	}
	return &op.req
}

// restoreLocked queues the requests that set all watches again. They come first
// on the connection, so no request can set a newer watch between them, and all
// have the same RelativeZxid.
func (c *Client) restoreLocked() {
	c.restoring = 0
	c.watches.disconnectedLocked()
	var op *restoreOp
	flush := func() {
		if op == nil {
			return
		}
		c.restoring++
		_ = c.pushLocked(op) // internal requests are not refused
		op = nil
	}
	for path, e := range c.watches.paths {
		if len(e.list) == 0 {
			continue
		}
		if op != nil && op.bytes+5*(4+len(path)) > restoreChunk {
			flush()
		}
		if op == nil {
			op = newRestoreOp(c)
		}
		op.add(path, e)
	}
	flush()
}

func newRestoreOp(c *Client) *restoreOp {
	op := &restoreOp{Pending: Pending[struct{}]{call: newCall(c, wire.OpSetWatches)}}
	op.internal = true
	op.settledLocked = op.restoredLocked
	op.req.RelativeZxid = c.restoreFrom
	return op
}

// add puts a path into the lists for which it has watches.
func (op *restoreOp) add(path string, e *pathWatches) {
	var has [watchRecursive + 1]bool
	for _, w := range e.list {
		has[w.kind] = true
		e.armed |= w.kind.armed()
	}
	op.watches = append(op.watches, e.list...)
	lists := [...]*[]string{
		watchData:       &op.req.DataWatches,
		watchExist:      &op.req.ExistWatches,
		watchChild:      &op.req.ChildWatches,
		watchPersistent: &op.req.PersistentWatches,
		watchRecursive:  &op.req.PersistentRecursiveWatches,
	}
	for kind, list := range lists {
		if has[kind] {
			*list = append(*list, path)
			op.bytes += 4 + len(path)
		}
	}
	if has[watchPersistent] || has[watchRecursive] {
		op.op = wire.OpSetWatches2
	}
}

func (op *restoreOp) decode(*jute.Reader) {}

// restoredLocked handles the server's answer. One-shot events that the client
// missed came before it.
func (op *restoreOp) restoredLocked(code znode.Error) {
	c := op.c
	c.restoring--
	if c.restoring == 0 {
		c.restoreFrom = c.lastZxid
	}
	for _, w := range op.watches {
		switch {
		case w.ended:
		case code != znode.OK:
			// Without the server the watch would be silent forever.
			w.endLocked(op.wrap(code))
			c.watches.removeLocked(w)
		case !w.kind.oneShot():
			w.pushLocked(Event{Type: EventRearmed, Path: w.Path(), Zxid: op.zxid})
			if w.ended {
				c.watches.removeLocked(w)
			}
		}
	}
	op.watches = nil
}
