package zk

import (
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/consensus/forward"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/insight"
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
	mark  int // where the reply's frame starts in the outbox

	code  znode.Error // set by refuse
	path  string
	watch bool
	kind  int32         // addWatch's mode, or the watcher type of check and removeWatches
	cmd   state.Command // of a write
	body  wire.Request  // of the rarer reads
	types []wire.OpCode // of a multi's results
	slot  bool          // it has one of requestSlots
	times *forward.Times
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
	case wire.OpGetData, wire.OpExists, wire.OpGetChildren, wire.OpGetChildren2:
		r.path, r.watch = rd.Ustring(), rd.Bool()
	case wire.OpGetACL, wire.OpGetAllChildrenNumber, wire.OpGetEphemerals, wire.OpDeleteContainer:
		r.path = rd.Ustring()
	case wire.OpAddWatch, wire.OpCheckWatches, wire.OpRemoveWatches:
		r.path, r.kind = rd.Ustring(), rd.Int32()
		if rd.Err() == nil && !r.kindIsKnown() {
			return false
		}
	case wire.OpSetWatches, wire.OpSetWatches2, wire.OpMultiRead, wire.OpReconfig:
		r.body = wire.NewRequest(r.op)
		r.body.Decode(rd)
	default:
		r.decodeCommand(rd)
	}
	return rd.Err() == nil
}

// Read implements server.Op.
func (r *request) Read(v *server.View) {
	if r.code != znode.OK {
		r.fail(v.Zxid(), r.code)
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
		r.empty(v.Zxid())
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
	case wire.OpReconfig:
		r.reconfig(v)
	case wire.OpDeleteContainer:
		r.deleteContainer(v)
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

// begin starts the reply. It reports false when the client gets nothing any
// more; r is then done.
func (r *request) begin(zxid znode.Zxid, code znode.Error) (b []byte, ok bool) {
	b, ok = r.c.out.begin()
	if !ok {
		r.done()
		return nil, false
	}
	b, r.mark = wire.BeginFrame(b)
	h := wire.ReplyHeader{Xid: r.xid, Zxid: zxid, Err: code}
	r.c.noteSlow(r, r.c.out.stats.answered(r, zxid))
	return h.Append(b), true
}

// reply answers with a code and, if that is OK, with a body of about so many bytes, which body appends. Without room
// for making it, the client gets an error.
func (r *request) reply(zxid znode.Zxid, code znode.Error, bytes int, body func(b []byte) []byte) {
	all := &r.c.listener.replies
	if code == znode.OK && !all.reserve(bytes) {
		r.c.listener.longReplies.Add(1)
		code = znode.ErrSystem
	}
	b, ok := r.begin(zxid, code)
	switch {
	case !ok:
	case code == znode.OK:
		r.end(body(slices.Grow(b, bytes)))
	default:
		r.end(b)
	}
	if code == znode.OK {
		all.release(bytes)
	}
}

// maxReply bounds a reply in bytes. A frame of ZooKeeper's protocol ends at 2^31, and no client takes a tenth of it.
const maxReply = 1 << 30

// refuseLong makes a reply that has become too long an error, and nothing else.
func (r *request) refuseLong(b []byte) []byte {
	r.c.listener.longReplies.Add(1)
	end := r.mark + wire.FrameLengthBytes + wire.ReplyHeaderBytes // whose last four bytes are the code
	return jute.AppendInt32(b[:end-4], int32(znode.ErrSystem))
}

// end sends the reply.
func (r *request) end(b []byte) {
	if len(b)-r.mark > maxReply {
		b = r.refuseLong(b)
	}
	wire.EndFrame(b, r.mark)
	c, wake := r.c, !r.quiet
	sampled := r.op != wire.OpPing && !c.listener.usage.Skip()
	var use insight.Use
	if sampled {
		use = insight.Use{Address: c.address, Path: r.firstPath(), Bytes: r.size + len(b) - r.mark}
	}
	r.done() // before the client can have its reply: from then on srvr must not call it outstanding
	c.out.commit(b, wake)
	if sampled {
		use.Session = c.session() // not under the outbox's lock
		c.listener.usage.Count(use)
	}
}

// fail replies with a code. UNIMPLEMENTED for a whole request type carries no
// zxid, which is -1, and ends the connection (UnimplementedRequestProcessor).
func (r *request) fail(zxid znode.Zxid, code znode.Error) {
	if log := r.c.listener.cfg.Audit; log != nil && code == znode.ErrNoAuth {
		log.Note(r.c.auditClient(), audit.Event{
			Operation: r.op.String(), Znode: r.path, Result: audit.Failure, Reason: code.Name(),
		})
	}
	c, final := r.c, code == znode.ErrUnimplemented && !r.op.ClientRequest()
	if final {
		zxid = -1
	}
	if b, ok := r.begin(zxid, code); ok {
		r.end(b)
	}
	if final {
		c.out.end("request of an unknown type")
	}
}

// empty replies without a body.
func (r *request) empty(zxid znode.Zxid) { r.fail(zxid, znode.OK) }
