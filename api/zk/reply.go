package zk

import (
	"slices"
	"sync/atomic"

	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server/audit"
	"github.com/zk-lite/zk-lite/server/insight"
	"github.com/zk-lite/zk-lite/znode"
)

// reply answers with a code and, if that is OK, with what body appends; nil: nothing. It ends the request.
func (r *request) reply(zxid znode.Zxid, code znode.Error, body func(b []byte) []byte) {
	r.replyLong(zxid, code, 0, body)
}

// replyLong is reply with a body of about so many bytes. Without room for making it, the client gets an error.
func (r *request) replyLong(zxid znode.Zxid, code znode.Error, bytes int, body func(b []byte) []byte) {
	c, room, wake := r.c, &r.c.listener.replies, !r.quiet
	if code == znode.OK && !room.reserve(bytes) {
		c.listener.longReplies.Add(1)
		code = znode.ErrSystem
	}
	if code == znode.OK {
		defer room.release(bytes)
	}
	r.audit(code)
	b, ok := c.out.begin()
	if !ok {
		r.done()
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
	use := r.finish(zxid, len(b)-mark)
	c.out.commit(b, wake)
	if use.Bytes > 0 {
		use.Session = c.session() // not under the outbox's lock
		c.listener.usage.Count(use)
	}
}

// finish ends a request whose reply of n bytes is in the outbox, which is locked. The statistics and the log of slow
// requests learn of it. It returns what the table of usage has to be told, if it wants a sample of this one.
func (r *request) finish(zxid znode.Zxid, n int) (use insight.Use) {
	r.c.noteSlow(r, r.c.out.stats.answered(r, zxid))
	if r.op != wire.OpPing && !r.c.listener.usage.Skip() {
		use = insight.Use{Address: r.c.address, Path: r.firstPath(), Bytes: r.size + n}
	}
	r.done() // before the client can have its reply: from then on srvr must not call it outstanding
	return use
}

// audit records a change, and a read that was refused.
func (r *request) audit(code znode.Error) {
	log := r.c.listener.cfg.Audit
	switch {
	case log == nil:
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

// maxReply bounds a reply in bytes. A frame of ZooKeeper's protocol ends at 2^31, and no client takes a tenth of it.
const maxReply = 1 << 30

// longReply is a reply of so many bytes that not all clients may be given one at a time.
const longReply = 2 << 20

// replyRoom bounds the bytes of the long replies that are made at a time: they are in memory before the first byte can
// be sent, or its client cut off.
type replyRoom struct {
	limit int64
	bytes atomic.Int64
}

// reserve takes room for a reply of n bytes. It reports false if there is none; a single reply may be larger than the
// bound.
func (a *replyRoom) reserve(n int) bool {
	if n <= longReply {
		return true
	}
	if sum := a.bytes.Add(int64(n)); sum > a.limit && sum > int64(n) {
		a.bytes.Add(-int64(n))
		return false
	}
	return true
}

// release ends what reserve has begun.
func (a *replyRoom) release(n int) {
	if n > longReply {
		a.bytes.Add(-int64(n))
	}
}
