package zk

import (
	"slices"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

// decodeMulti fills r.cmd and r.types.
func (r *request) decodeMulti(rd *jute.Reader) {
	var m wire.MultiRequest
	m.Decode(rd)
	if rd.Err() != nil {
		return
	}
	r.cmd = state.Command{Op: state.OpMulti, Ops: make([]state.Command, len(m.Ops))}
	r.types = r.types[:0]
	for i := range m.Ops {
		r.cmd.Ops[i] = multiCommand(&m.Ops[i])
		r.types = append(r.types, m.Ops[i].EffectiveType().ResultType())
	}
}

// multiCommand is one operation of a multi. Inside a multi the mode of a
// create goes before its opcode (wire.MultiOp.EffectiveType).
func multiCommand(op *wire.MultiOp) state.Command {
	switch q := op.Request.(type) {
	case *wire.CreateRequest:
		// Without a TTL in the request, a TTL mode gets an impossible one.
		return multiCreate(op, q.Path, q.Data, q.ACL, q.Mode, -1)
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
		}
	}
	return wire.AppendMultiEnd(b)
}

// appendMultiError appends the result of an operation that failed or, in a multi that failed, was not done.
func appendMultiError(b []byte, code znode.Error) []byte {
	h, body := wire.MultiHeader{Type: wire.OpError, Err: code}, wire.ErrorResponse{Err: code}
	return body.Append(h.Append(b))
}

// multiRead answers each of its reads by itself: one may fail and the others
// keep their data. A reply of more than an outbox may hold is refused before it
// is made: a request of 48 KB can ask for gigabytes.
func (r *request) multiRead(v *server.View) {
	ops := r.body.(*wire.MultiRequest).Ops
	most := min(r.c.listener.cfg.OutboxBytes, maxReply)
	codes, bytes := r.lookAt(v, ops, most)
	if bytes > most {
		r.c.listener.longReplies.Add(1)
		r.reply(v.Zxid(), znode.ErrSystem, nil)
		return
	}
	r.replyLong(v.Zxid(), znode.OK, bytes, func(b []byte) []byte {
		for i := range ops {
			b = appendRead(b, v, &ops[i], codes[i])
		}
		return wire.AppendMultiEnd(b)
	})
}

// lookAt returns what becomes of each read, and about how long the reply will be; it stops when that is more than most.
func (r *request) lookAt(v *server.View, ops []wire.MultiOp, most int) (codes []znode.Error, bytes int) {
	const perRead = wire.StatBytes + 16
	x := znode.Txn{Identities: r.ids}
	for i := range ops {
		path := readPath(&ops[i])
		code := v.Tree().Allows(&x, path, znode.PermRead)
		codes = append(codes, code)
		switch bytes += perRead; {
		case code != znode.OK:
		case ops[i].Type == wire.OpGetData:
			stat, _ := v.Tree().Exists(path, super)
			bytes += int(stat.DataLength)
		default: // more names than that are too long anyway
			_, _ = v.Tree().VisitChildren(path, 0, most/4, super, func(name string) { bytes += 4 + len(name) })
		}
		if bytes > most {
			break
		}
	}
	return codes, bytes
}

// super may read everything: that a client may has been looked at.
var super = []znode.ID{znode.SuperIDs}

func readPath(op *wire.MultiOp) string {
	if q, ok := op.Request.(*wire.GetDataRequest); ok {
		return q.Path
	}
	return op.Request.(*wire.GetChildrenRequest).Path
}

// appendRead appends the result of a read that is permitted, or its code.
func appendRead(b []byte, v *server.View, op *wire.MultiOp, code znode.Error) []byte {
	if code != znode.OK {
		return appendMultiError(b, code)
	}
	h, path := wire.MultiHeader{Type: op.Type}, readPath(op)
	b = h.Append(b)
	if op.Type == wire.OpGetData {
		data, stat, _ := v.Tree().Get(path, super)
		x := wire.GetDataResponse{Data: data, Stat: stat}
		return x.Append(b)
	}
	names, _, _ := v.Tree().Children(path, super)
	x := wire.GetChildrenResponse{Children: names}
	return x.Append(b)
}
