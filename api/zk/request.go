package zk

import (
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// request is one request of a client until it is answered. It implements
// server.Op. Requests are pooled: nothing of one may be kept.
type request struct {
	c     *conn
	xid   wire.Xid
	op    wire.OpCode
	size  int // bytes of its frame
	start time.Time
	ids   []znode.ID // the client's identities when the request came
	// quiet says that the reader will flush the reply: it is certain to be
	// given within the reader's own call, because nothing was pending.
	quiet bool
	slot  bool // it has one of requestSlots

	code    znode.Error // set by refuse
	path    string
	watch   bool
	mode    wire.AddWatchMode
	watcher znode.WatcherType // of checkWatches and removeWatches
	cmd     state.Command     // of a write
	body    wire.Request      // of the rarer reads
	types   []wire.OpCode     // of a multi's results

	result *state.Result  // of a write, during Done
	times  *forward.Times // the same
}

func (c *conn) newRequest(h wire.RequestHeader, size int) *request {
	r, ok := c.listener.pool.Get().(*request)
	if !ok {
		r = new(request)
	}
	r.c, r.xid, r.op, r.size, r.start = c, h.Xid, h.Type, size, c.now
	r.ids = c.sc.Load().Identities()
	// Requests are counted until they are answered, and only this goroutine
	// adds any; with none in the server's queue a read runs in place.
	r.quiet = c.pending.Add(1) == 1
	if slots := c.listener.slots; slots != nil {
		r.slot = slots.take(c)
	}
	return r
}

// done gives the request back to the pool.
func (r *request) done() {
	c := r.c
	if r.slot {
		<-c.listener.slots
	}
	types := r.types[:0]
	*r = request{types: types}
	c.pending.Add(-1)
	c.listener.pool.Put(r)
}

// refuse makes the request one that is answered, in its turn, by a code.
func (r *request) refuse(code znode.Error) {
	r.code = code
	r.cmd = state.Command{}
	r.body = nil
}

// isCommand reports whether the request goes through the log.
func (r *request) isCommand() bool { return r.cmd.Op != 0 }

// decode fills r from the request's body. It reports false for a body that is
// not what it should be.
func (r *request) decode(rd *jute.Reader) bool {
	switch r.op {
	case wire.OpPing, wire.OpWhoAmI:
	case wire.OpGetData:
		var q wire.GetDataRequest
		q.Decode(rd)
		r.path, r.watch = q.Path, q.Watch
	case wire.OpExists:
		var q wire.ExistsRequest
		q.Decode(rd)
		r.path, r.watch = q.Path, q.Watch
	case wire.OpGetChildren, wire.OpGetChildren2:
		var q wire.GetChildrenRequest
		q.Decode(rd)
		r.path, r.watch = q.Path, q.Watch
	case wire.OpGetACL:
		var q wire.GetACLRequest
		q.Decode(rd)
		r.path = q.Path
	case wire.OpGetAllChildrenNumber:
		var q wire.GetAllChildrenNumberRequest
		q.Decode(rd)
		r.path = q.Path
	case wire.OpGetEphemerals:
		var q wire.GetEphemeralsRequest
		q.Decode(rd)
		r.path = q.PrefixPath
	case wire.OpDeleteContainer:
		var q wire.DeleteContainerRequest
		q.Decode(rd)
		r.path = q.Path
	case wire.OpAddWatch:
		var q wire.AddWatchRequest
		q.Decode(rd)
		r.path, r.mode = q.Path, q.Mode
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		var q wire.RemoveWatchesRequest
		q.Decode(rd)
		r.path, r.watcher = q.Path, q.Type
	case wire.OpSetWatches, wire.OpSetWatches2, wire.OpMultiRead, wire.OpReconfig:
		r.body = wire.NewRequest(r.op)
		r.body.Decode(rd)
	default:
		r.decodeCommand(rd)
	}
	return rd.Err() == nil && r.kindIsKnown()
}

// Read implements server.Op.
func (r *request) Read(v *server.View) {
	switch {
	case !r.op.ClientRequest():
		r.unknown()
		return
	case r.code != znode.OK:
		r.reply(v.Zxid(), r.code, nil)
		return
	}
	switch r.op {
	case wire.OpGetData:
		r.getData(v)
	case wire.OpExists:
		r.exists(v)
	case wire.OpGetChildren, wire.OpGetChildren2:
		r.getChildren(v)
	case wire.OpPing:
		r.xid = wire.XidPing // whatever was sent (FinalRequestProcessor)
		r.reply(v.Zxid(), znode.OK, nil)
	case wire.OpGetACL:
		r.getACL(v)
	case wire.OpGetAllChildrenNumber:
		r.getAllChildrenNumber(v)
	case wire.OpGetEphemerals:
		r.getEphemerals(v)
	case wire.OpWhoAmI:
		r.whoAmI(v)
	case wire.OpMultiRead:
		r.multiRead(v)
	case wire.OpAddWatch:
		r.addWatch(v)
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		r.removeWatches(v)
	case wire.OpSetWatches, wire.OpSetWatches2:
		r.setWatches(v)
	case wire.OpReconfig, wire.OpDeleteContainer:
		// ZooKeeper that has not enabled reconfig answers so before it looks at anything, standalone or not
		// (PrepRequestProcessor). deleteContainer is what its leader sends to itself when a container is empty, and no
		// client has a call for: it asks for no permission.
		r.reply(v.Zxid(), znode.ErrUnimplemented, nil)
	default:
		panic("zk: invariant broken: no read of type " + r.op.String())
	}
}

// Weight implements server.Op: the request's own bytes and about those of its reply.
func (r *request) Weight(v *server.View) int {
	switch r.op {
	case wire.OpGetData:
		stat, _ := v.Tree().Exists(r.path, r.ids)
		return r.size + int(stat.DataLength)
	case wire.OpGetChildren, wire.OpGetChildren2:
		stat, _ := v.Tree().Exists(r.path, r.ids)
		return r.size + int(stat.NumChildren)*nameBytes
	case wire.OpMultiRead, wire.OpGetEphemerals:
		return r.size + r.c.listener.cfg.OutboxBytes
	}
	return r.size
}

// nameBytes is about what a child's name takes in a reply.
const nameBytes = 64
