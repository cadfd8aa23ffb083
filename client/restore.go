package client

import (
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// restoreChunk bounds the paths of one setWatches, in bytes. It is what
// ZooKeeper's own client sends at most (ClientCnxn.SET_WATCHES_MAX_LENGTH), and
// leaves room below the servers' limit of a frame.
const restoreChunk = 128 << 10

// restoreOp leaves some of the watches on a new connection. Watches without a
// persistent one among them go as setWatches, which servers before 3.6 know.
type restoreOp struct {
	Pending[struct{}]
	quiet
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

// restoreLocked queues the requests that leave all watches again. They stand
// before everything else on the connection, so no request can leave a newer
// watch in between, and all have the same RelativeZxid.
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
	op := new(restoreOp)
	c.prepareAny(&op.call, wire.OpSetWatches, "")
	op.internal = true
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

// settledLocked takes the server's answer. Missed one-shot events have come
// before it.
func (op *restoreOp) settledLocked(h wire.ReplyHeader) {
	c := op.c
	c.restoring--
	if c.restoring == 0 {
		c.restoreFrom = c.lastZxid
	}
	for _, w := range op.watches {
		switch {
		case w.ended:
		case h.Err != znode.OK:
			// Without the server's help the watch would be silent for ever.
			w.endLocked(op.wrap(h.Err))
			c.watches.removeLocked(w)
		case !w.kind.oneShot():
			w.pushLocked(Event{Type: EventRearmed, Path: w.Path(), Zxid: h.Zxid})
			if w.ended {
				c.watches.removeLocked(w)
			}
		}
	}
	op.watches = nil
}

// quiet is for operations whose reply has no body that matters.
type quiet struct{}

func (quiet) decode(*jute.Reader) {}
