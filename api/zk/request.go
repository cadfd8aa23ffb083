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
	// quiet: the reader will flush the reply, which is certain to be made
	// within the reader's own call, because nothing was pending.
	quiet bool
	slot  bool // it has one of requestSlots

	code    znode.Error // set by refuse
	path    string
	watch   bool
	mode    wire.AddWatchMode
	watcher znode.WatcherType // of checkWatches and removeWatches
	cmd     state.Command     // of a write
	body    wire.Request      // of the rarer reads
	barrier *server.Barrier   // of syncWithin, if it goes through the log
	asOf    server.Moment     // of syncWithin, if it does not
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
	case wire.OpSyncWithin:
		var q wire.SyncWithinRequest
		if q.Decode(rd); rd.Err() == nil {
			r.syncWithin(q.MaxStale)
		}
	case wire.OpReconfig:
		var q wire.ReconfigRequest
		if q.Decode(rd); rd.Err() == nil {
			r.reconfig(&q)
		}
	case wire.OpSetWatches, wire.OpSetWatches2, wire.OpMultiRead, wire.OpFeed, wire.OpTree, wire.OpRevisions:
		r.body = wire.NewRequest(r.op)
		r.body.Decode(rd)
	default:
		r.decodeCommand(rd)
	}
	return rd.Err() == nil && r.kindIsKnown()
}

// decodeCommand fills r.cmd with what the request asks the log for.
func (r *request) decodeCommand(rd *jute.Reader) {
	c := &r.cmd
	switch r.op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		var q wire.CreateRequest
		q.Decode(rd)
		*c = state.Command{
			Op: state.OpCreate, Path: q.Path, Data: q.Data, ACL: q.ACL, Mode: q.Mode,
		}
		if r.op == wire.OpCreateContainer {
			c.Kind = znode.CreateContainer // whatever the mode is
		}
	case wire.OpCreateTTL:
		var q wire.CreateTTLRequest
		q.Decode(rd)
		*c = state.Command{
			Op: state.OpCreate, Path: q.Path, Data: q.Data, ACL: q.ACL, Mode: q.Mode,
			Kind: znode.CreateTTL, TTL: q.TTLMillis,
		}
	case wire.OpDelete:
		var q wire.DeleteRequest
		q.Decode(rd)
		*c = state.Command{Op: state.OpDelete, Path: q.Path, Version: q.Version}
	case wire.OpSetData:
		var q wire.SetDataRequest
		q.Decode(rd)
		*c = state.Command{Op: state.OpSetData, Path: q.Path, Data: q.Data, Version: q.Version}
	case wire.OpSetACL:
		var q wire.SetACLRequest
		q.Decode(rd)
		*c = state.Command{Op: state.OpSetACL, Path: q.Path, ACL: q.ACL, Version: q.Version}
	case wire.OpSync:
		var q wire.SyncRequest
		q.Decode(rd)
		r.path, c.Op = q.Path, state.OpSync
	case wire.OpCloseSession:
		c.Op = state.OpCloseSession
	case wire.OpMulti:
		r.decodeMulti(rd)
	case wire.OpBranch:
		r.decodeBranch(rd)
	default:
		panic("zk: invariant broken: no command of type " + r.op.String())
	}
}

// decodeMulti fills r.cmd and r.types.
func (r *request) decodeMulti(rd *jute.Reader) {
	var m wire.MultiRequest
	m.Decode(rd)
	if rd.Err() != nil {
		return
	}
	r.cmd = state.Command{Op: state.OpMulti, Ops: make([]state.Command, 0, len(m.Ops))}
	r.types = r.types[:0]
	r.addOps(m.Ops)
}

// decodeBranch fills r.cmd and r.types.
func (r *request) decodeBranch(rd *jute.Reader) {
	var q wire.BranchRequest
	if q.Decode(rd); rd.Err() != nil {
		return
	}
	r.cmd = state.Command{Op: state.OpBranch, Branch: &state.Branch{If: q.If, Then: len(q.Then)}}
	r.types = r.types[:0]
	r.addOps(q.Then)
	r.addOps(q.Else)
}

func (r *request) addOps(ops []wire.MultiOp) {
	for i := range ops {
		r.cmd.Ops = append(r.cmd.Ops, multiCommand(&ops[i]))
		r.types = append(r.types, ops[i].EffectiveType().ResultType())
	}
}

// multiCommand is one operation of a multi. Inside a multi the mode of a
// create takes precedence over its opcode (wire.MultiOp.EffectiveType).
func multiCommand(op *wire.MultiOp) state.Command {
	switch q := op.Request.(type) {
	case *wire.CreateRequest:
		return multiCreate(op, q.Path, q.Data, q.ACL, q.Mode, 0)
	case *wire.CreateTTLRequest:
		return multiCreate(op, q.Path, q.Data, q.ACL, q.Mode, q.TTLMillis)
	case *wire.DeleteRequest:
		return state.Command{Op: state.OpDelete, Path: q.Path, Version: q.Version}
	case *wire.SetDataRequest:
		return state.Command{
			Op: state.OpSetData, Path: q.Path, Data: q.Data, Version: q.Version,
		}
	case *wire.CheckRequest:
		return state.Command{Op: state.OpCheck, Path: q.Path, Version: q.Version}
	case *wire.GetDataRequest:
		return state.Command{Op: state.OpGet, Path: q.Path}
	case *wire.GetChildrenRequest:
		return state.Command{Op: state.OpChildren, Path: q.Path}
	}
	panic("zk: invariant broken: the decoder let an operation of another kind into a multi")
}

func multiCreate(
	op *wire.MultiOp, path string, data []byte, acl []znode.ACL, mode znode.Mode, ttl int64,
) state.Command {
	c := state.Command{Op: state.OpCreate, Path: path, Data: data, ACL: acl, Mode: mode}
	switch op.EffectiveType() {
	case wire.OpCreateContainer:
		c.Kind = znode.CreateContainer
	case wire.OpCreateTTL:
		c.Kind, c.TTL = znode.CreateTTL, ttl
	}
	return c
}

// isCommand reports whether the request goes through the log.
func (r *request) isCommand() bool { return r.cmd.Op != 0 }

// refuse has the request answered with a code, in its turn.
func (r *request) refuse(code znode.Error) {
	r.code = code
	r.cmd = state.Command{}
	r.body = nil
}

// firstPath is the path of a request, or of the first operation of a transaction.
func (r *request) firstPath() string {
	switch {
	case r.path != "":
		return r.path
	case len(r.cmd.Ops) > 0:
		return r.cmd.Ops[0].Path
	}
	return r.cmd.Path
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
	case wire.OpFeed:
		r.feed(v)
	case wire.OpSyncWithin:
		r.answerStaleness(v.Zxid(), znode.OK)
	case wire.OpTree:
		r.tree(v)
	case wire.OpRevisions:
		r.revisions(v)
	case wire.OpAddWatch:
		r.addWatch(v)
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		r.removeWatches(v)
	case wire.OpSetWatches, wire.OpSetWatches2:
		r.setWatches(v)
	case wire.OpDeleteContainer:
		// This is what ZooKeeper's leader sends to itself when a container is empty, and no client has a call for: it
		// asks for no permission.
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
	case wire.OpMultiRead, wire.OpGetEphemerals, wire.OpFeed, wire.OpTree, wire.OpRevisions:
		return r.size + r.c.listener.cfg.OutboxBytes
	}
	return r.size
}

// nameBytes is about what a child's name takes in a reply.
const nameBytes = 64
