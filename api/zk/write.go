package zk

import (
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

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
			c.Kind = znode.CreateContainer // whatever the mode says
		}
	case wire.OpCreateTTL:
		var q wire.CreateTTLRequest
		q.Decode(rd)
		*c = state.Command{
			Op: state.OpCreate, Path: q.Path, Data: q.Data, ACL: q.ACL, Mode: q.Mode,
			Kind: znode.CreateTTL, TTL: q.TTLMillis,
		}
	case wire.OpDelete:
		*c = state.Command{
			Op: state.OpDelete, Path: rd.Ustring(), Version: znode.Version(rd.Int32()),
		}
	case wire.OpSetData:
		var q wire.SetDataRequest
		q.Decode(rd)
		*c = state.Command{Op: state.OpSetData, Path: q.Path, Data: q.Data, Version: q.Version}
	case wire.OpSetACL:
		var q wire.SetACLRequest
		q.Decode(rd)
		*c = state.Command{Op: state.OpSetACL, Path: q.Path, ACL: q.ACL, Version: q.Version}
	case wire.OpSync:
		r.path = rd.Ustring()
		*c = state.Command{Op: state.OpSync}
	case wire.OpCloseSession:
		*c = state.Command{Op: state.OpCloseSession}
	case wire.OpMulti:
		r.decodeMulti(rd)
	default:
		panic("zk: invariant broken: no command of type " + r.op.String())
	}
}

// Done implements server.Op.
func (r *request) Done(v *server.View, x *state.Result) {
	c := r.c
	r.times = v.Times()
	if x.Code == znode.ErrSessionMoved {
		// The client is elsewhere by now; a reply could only confuse it
		// (FinalRequestProcessor; ZOOKEEPER-710).
		r.done()
		c.Disconnect(server.ReasonMoved)
		return
	}
	if log := c.listener.cfg.Audit; log != nil {
		log.Change(c.auditClient(), &r.cmd, x)
	}
	closing := r.op == wire.OpCloseSession
	r.answer(x)
	if closing {
		c.Disconnect(server.ReasonClosed)
	}
}

// answer sends the reply to a write.
func (r *request) answer(x *state.Result) {
	b, ok := r.begin(x.Zxid, x.Code)
	if !ok {
		return
	}
	if x.Code == znode.OK {
		switch r.op {
		case wire.OpCreate:
			b = jute.AppendUstring(b, x.Path)
		case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
			b = wire.AppendStat(jute.AppendUstring(b, x.Path), &x.Stat)
		case wire.OpSetData, wire.OpSetACL:
			b = wire.AppendStat(b, &x.Stat)
		case wire.OpSync:
			b = jute.AppendUstring(b, r.path)
		case wire.OpMulti:
			b = r.appendMulti(b, x)
		}
	}
	r.end(b)
}
