package zk

import (
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

// appendMulti appends the results of a multi. One that failed is a list of
// errors, under a header without error.
func (r *request) appendMulti(b []byte, x *state.Result) []byte {
	failed := false
	for i := range x.Multi {
		failed = failed || x.Multi[i].Code != znode.OK
	}
	for i := range x.Multi {
		one := &x.Multi[i]
		h := wire.MultiHeader{Type: r.types[i], Err: one.Code}
		if failed {
			h.Type = wire.OpError
			b = jute.AppendInt32(h.Append(b), int32(one.Code))
			continue
		}
		b = h.Append(b)
		switch h.Type {
		case wire.OpCreate:
			b = jute.AppendUstring(b, one.Path)
		case wire.OpCreate2:
			b = wire.AppendStat(jute.AppendUstring(b, one.Path), &one.Stat)
		case wire.OpSetData:
			b = wire.AppendStat(b, &one.Stat)
		}
	}
	return appendMultiEnd(b)
}

func appendMultiEnd(b []byte) []byte {
	end := wire.MultiHeader{Type: wire.OpError, Done: true, Err: -1}
	return end.Append(b)
}

// multiRead answers each of its reads by itself: one may fail and the others
// keep their data. A reply of more than an outbox may hold is refused: a request
// of 48 KB can ask for gigabytes.
func (r *request) multiRead(v *server.View) {
	b, ok := r.begin(v.Zxid(), znode.OK)
	if !ok {
		return
	}
	for _, op := range r.body.(*wire.MultiRequest).Ops {
		if b = r.appendRead(b, v, &op); len(b)-r.mark > min(r.c.listener.cfg.OutboxBytes, maxReply) {
			r.end(r.refuseLong(b))
			return
		}
	}
	r.end(appendMultiEnd(b))
}

func (r *request) appendRead(b []byte, v *server.View, op *wire.MultiOp) []byte {
	h := wire.MultiHeader{Type: op.Type}
	switch q := op.Request.(type) {
	case *wire.GetDataRequest:
		data, stat, code := v.Tree().Get(q.Path, r.ids)
		if h.Err = code; code == znode.OK {
			return wire.AppendStat(jute.AppendBuffer(h.Append(b), data), &stat)
		}
	case *wire.GetChildrenRequest:
		names, _, code := v.Tree().Children(q.Path, r.ids)
		if h.Err = code; code == znode.OK {
			return jute.AppendUstrings(h.Append(b), names)
		}
	}
	h.Type = wire.OpError
	return jute.AppendInt32(h.Append(b), int32(h.Err))
}
