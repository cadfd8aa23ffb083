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
	default:
		panic("zk: invariant broken: no command of type " + r.op.String())
	}
}

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
	r.answer(x)
	if closing {
		c.Disconnect(server.ReasonClosed)
	}
}

// answer sends the reply to a write.
func (r *request) answer(x *state.Result) {
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
	case wire.OpMulti:
		r.reply(x.Zxid, x.Code, func(b []byte) []byte { return appendMulti(b, r.types, x) })
	default: // delete, closeSession
		r.reply(x.Zxid, x.Code, nil)
	}
}
