package zk

import (
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// Done implements server.Op.
func (r *request) Done(v *server.View, x *state.Result) {
	c, closing := r.c, r.op == wire.OpCloseSession
	if x.Code == znode.ErrSessionMoved {
		// The client is elsewhere by now; a reply could only confuse it
		// (FinalRequestProcessor; ZOOKEEPER-710).
		r.done()
		c.Disconnect(server.ReasonMoved)
		return
	}
	r.result, r.times = x, v.Times()
	r.answer(v, x)
	if closing {
		c.Disconnect(server.ReasonClosed)
	}
}

// answer sends the reply to a write.
func (r *request) answer(v *server.View, x *state.Result) {
	switch r.op {
	case wire.OpCreate:
		body := wire.CreateResponse{Path: x.Path}
		r.reply(x.Zxid, x.Code, body.Append)
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		body := wire.Create2Response{Path: x.Path, Stat: x.Stat}
		r.reply(x.Zxid, x.Code, body.Append)
	case wire.OpSetData:
		body := wire.SetDataResponse{Stat: x.Stat}
		r.reply(x.Zxid, x.Code, body.Append)
	case wire.OpSetACL:
		body := wire.SetACLResponse{Stat: x.Stat}
		r.reply(x.Zxid, x.Code, body.Append)
	case wire.OpSync:
		body := wire.SyncResponse{Path: r.path}
		r.reply(x.Zxid, x.Code, body.Append)
	case wire.OpSyncWithin:
		if x.Code == znode.OK {
			r.asOf = v.Fresh().Applied(r.barrier)
		}
		r.answerStaleness(x.Zxid, x.Code)
	case wire.OpReconfig:
		r.answerReconfig(v, x)
	case wire.OpMulti:
		r.reply(x.Zxid, x.Code, func(b []byte) []byte { return appendMulti(b, r.types, x) })
	case wire.OpBranch:
		r.replyLong(x.Zxid, x.Code, x.ReadBytes(), func(b []byte) []byte {
			types := r.types[r.cmd.Branch.Then:]
			if x.Then {
				types = r.types[:r.cmd.Branch.Then]
			}
			return appendMulti(jute.AppendBool(b, x.Then), types, x)
		})
	default: // delete, closeSession
		r.reply(x.Zxid, x.Code, nil)
	}
}

// appendMulti appends the results of a multi with operations of these types. One that failed is a list of
// errors, under a header without error.
func appendMulti(b []byte, types []wire.OpCode, x *state.Result) []byte {
	failed := slices.ContainsFunc(x.Multi, func(one state.OpResult) bool { return one.Code != znode.OK })
	for i := range x.Multi {
		one := &x.Multi[i]
		if failed {
			b = appendMultiError(b, one.Code)
			continue
		}
		h := wire.MultiHeader{Type: types[i]}
		b = h.Append(b)
		switch h.Type {
		case wire.OpCreate:
			body := wire.CreateResponse{Path: one.Path}
			b = body.Append(b)
		case wire.OpCreate2:
			body := wire.Create2Response{Path: one.Path, Stat: one.Stat}
			b = body.Append(b)
		case wire.OpSetData:
			body := wire.SetDataResponse{Stat: one.Stat}
			b = body.Append(b)
		case wire.OpGetData:
			body := wire.GetDataResponse{Data: one.Read.Data, Stat: one.Stat}
			b = body.Append(b)
		case wire.OpGetChildren:
			body := wire.GetChildrenResponse{Children: one.Read.Children}
			b = body.Append(b)
		}
	}
	return wire.AppendMultiEnd(b)
}

// appendMultiError appends the result of an operation that failed or, in a multi that failed, was not done.
func appendMultiError(b []byte, code znode.Error) []byte {
	h, body := wire.MultiHeader{Type: wire.OpError, Err: code}, wire.ErrorResponse{Err: code}
	return body.Append(h.Append(b))
}

// maxReply bounds a reply in bytes. A frame of ZooKeeper's protocol ends at 2^31, and no client takes a tenth of it.
const maxReply = 1 << 30

// reply answers with a code and, if that is OK, with the body that body appends; nil: none. It ends the request.
func (r *request) reply(zxid znode.Zxid, code znode.Error, body func(b []byte) []byte) {
	r.replyLong(zxid, code, 0, body)
}

// replyLong is reply with a body of about this many bytes. If replyRoom has no room for it, the client gets an error.
func (r *request) replyLong(zxid znode.Zxid, code znode.Error, bytes int, body func(b []byte) []byte) {
	c, room := r.c, &r.c.listener.replies
	if code != znode.OK {
		bytes = 0
	} else if !room.reserve(bytes) {
		c.listener.longReplies.Add(1)
		code, bytes = znode.ErrSystem, 0
	}
	if c.listener.cfg.Audit != nil {
		r.audit(code)
	}
	b, ok := c.out.begin()
	if !ok {
		r.done()
		room.release(bytes)
		return
	}
	b, mark := wire.BeginFrame(b)
	h := wire.ReplyHeader{Xid: r.xid, Zxid: zxid, Err: code}
	b = h.Append(b)
	if code == znode.OK && body != nil {
		b = body(slices.Grow(b, bytes))
	}
	if len(b)-mark > maxReply {
		c.listener.longReplies.Add(1)
		h.Err = znode.ErrSystem
		b = h.Append(b[:mark+wire.FrameLengthBytes])
	}
	wire.EndFrame(b, mark)
	r.finish(zxid, b, len(b)-mark)
	room.release(bytes)
}

// finish ends a request whose reply, the last n bytes of b, is in the outbox, and commits it. Statistics, slow log and
// usage learn of it, as the audit log has before.
func (r *request) finish(zxid znode.Zxid, b []byte, n int) {
	c, wake := r.c, !r.quiet
	c.noteSlow(r, c.out.stats.answered(r, zxid))
	sampled := r.op != wire.OpPing && !c.listener.usage.Skip()
	var use insight.Use
	if sampled {
		use = insight.Use{Address: c.address, Path: r.firstPath(), Bytes: r.size + n}
	}
	r.done() // before the client can have its reply: from then on srvr must not call it outstanding
	c.out.commit(b, wake)
	if sampled {
		use.Session = c.session() // not under the outbox's lock
		c.listener.usage.Count(use)
	}
}

// audit records a change, and a read that was refused.
func (r *request) audit(code znode.Error) {
	log := r.c.listener.cfg.Audit
	switch {
	case r.result != nil:
		log.Change(r.c.auditClient(), &r.cmd, r.result)
	case code == znode.ErrNoAuth:
		log.Note(r.c.auditClient(), audit.Event{
			Operation: r.op.String(), Znode: r.path, Result: audit.Failure, Reason: code.Name(),
		})
	}
}

// unknown answers a request of a type that ZooKeeper does not have, without a zxid, and ends the connection
// (UnimplementedRequestProcessor).
func (r *request) unknown() {
	c := r.c
	r.reply(-1, znode.ErrUnimplemented, nil)
	c.out.end("request of an unknown type")
}

// maxSlow is how many slow requests of one connection are kept until their replies are written.
const maxSlow = 16

// noteSlow keeps a request that was answered now, if it was slow, until its reply is written. The outbox is locked.
func (c *conn) noteSlow(r *request, now time.Time) {
	if c.out.since.IsZero() {
		c.out.since = now
	}
	log := c.listener.cfg.Slow
	took := now.Sub(r.start)
	switch {
	case !log.Slow(took):
		return
	case len(c.out.slow) >= maxSlow:
		log.Leave(1)
		return
	}
	x := insight.SlowRequest{
		At: r.start, Port: insight.PortZooKeeper, Operation: r.op.String(), Path: r.firstPath(), Address: c.remote,
		Took: took, Stages: insight.StagesOf(r.start, r.times, now),
	}
	if r.times != nil {
		x.Index, x.Term = r.times.Index, r.times.Term
	}
	c.out.slow = append(c.out.slow, x)
}

// reportSlow adds to the log the slow requests whose replies the client has taken now; the first reply was added at
// since. If only the writing was slow, it adds that.
func (c *conn) reportSlow(since time.Time, slow []insight.SlowRequest) {
	log, now := c.listener.cfg.Slow, time.Now()
	if len(slow) == 0 && log.Slow(now.Sub(since)) {
		slow = []insight.SlowRequest{{
			At: since, Port: insight.PortZooKeeper, Operation: insight.OnlyReply, Address: c.remote,
		}}
	}
	for _, x := range slow {
		x.Session = c.session()
		x.Stages.Reply = now.Sub(x.At.Add(x.Took))
		x.Took = now.Sub(x.At)
		log.Add(x)
	}
}
