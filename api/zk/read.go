package zk

import (
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/watch"
	"github.com/zk-lite/zk-lite/znode"
)

// The reads. Each sees the state v, leaves its watch and enqueues its reply as
// one step with respect to every write.

func (r *request) getData(v *server.View) {
	data, stat, code := v.Tree().Get(r.path, r.ids)
	if code == znode.OK && r.watch {
		code = r.arm(v, r.path, watch.Data)
	}
	x := wire.GetDataResponse{Data: data, Stat: stat}
	r.replyLong(v.Zxid(), code, len(data)+wire.StatBytes, x.Append)
}

// exists leaves a watch also on a znode that is missing: that is what it is
// for. It asks for READ on one that is not (ZOOKEEPER-2590).
func (r *request) exists(v *server.View) {
	if strings.IndexByte(r.path, 0) >= 0 {
		r.reply(v.Zxid(), znode.ErrBadArguments, nil)
		return
	}
	stat, code := v.Tree().Exists(r.path, r.ids)
	if r.watch && (code == znode.OK || code == znode.ErrNoNode) {
		if c := r.arm(v, r.path, watch.Data); c != znode.OK {
			code = c
		}
	}
	x := wire.ExistsResponse{Stat: stat}
	r.reply(v.Zxid(), code, x.Append)
}

func (r *request) getChildren(v *server.View) {
	names, stat, code := v.Tree().Children(r.path, r.ids)
	if code == znode.OK && r.watch {
		code = r.arm(v, r.path, watch.Child)
	}
	bytes := ustringsBytes(names) + wire.StatBytes
	if r.op == wire.OpGetChildren {
		x := wire.GetChildrenResponse{Children: names}
		r.replyLong(v.Zxid(), code, bytes, x.Append)
		return
	}
	x := wire.GetChildren2Response{Children: names, Stat: stat}
	r.replyLong(v.Zxid(), code, bytes, x.Append)
}

// ustringsBytes is how long a list of texts is in a reply.
func ustringsBytes(list []string) int {
	n := 4 + 4*len(list)
	for _, s := range list {
		n += len(s)
	}
	return n
}

func (r *request) getACL(v *server.View) {
	acl, stat, code := v.Tree().ACLOf(r.path, r.ids)
	x := wire.GetACLResponse{ACL: acl, Stat: stat}
	r.reply(v.Zxid(), code, x.Append)
}

func (r *request) getAllChildrenNumber(v *server.View) {
	n, code := v.Tree().Descendants(r.path, r.ids)
	x := wire.GetAllChildrenNumberResponse{TotalNumber: int32(n)}
	r.reply(v.Zxid(), code, x.Append)
}

// getEphemerals lists the session's own ephemerals. The prefix is one of the
// text ("/a" matches "/ab"); blank or "/" means all (FinalRequestProcessor).
func (r *request) getEphemerals(v *server.View) {
	prefix := r.path
	// Java's trim takes away everything up to a space.
	if p := strings.TrimFunc(prefix, func(c rune) bool { return c <= ' ' }); p == "" || p == "/" {
		prefix = ""
	}
	paths := v.Tree().Ephemerals(r.c.session(), prefix)
	slices.Sort(paths)
	x := wire.GetEphemeralsResponse{Ephemerals: paths}
	r.replyLong(v.Zxid(), znode.OK, ustringsBytes(paths), x.Append)
}

// whoAmI lists the client's identities: names, never hashes. Schemes without
// a provider, such as super, have no name (AuthUtil).
func (r *request) whoAmI(v *server.View) {
	var x wire.WhoAmIResponse
	for _, id := range r.ids {
		info := wire.ClientInfo{AuthScheme: id.Scheme}
		switch id.Scheme {
		case "digest":
			info.User, _, _ = strings.Cut(id.ID, ":")
		case "ip", "x509", "sasl":
			info.User = id.ID
		}
		x.ClientInfo = append(x.ClientInfo, info)
	}
	r.reply(v.Zxid(), znode.OK, x.Append)
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
		bytes += perRead
		if code == znode.OK {
			stat, _ := v.Tree().Exists(path, super)
			if ops[i].Type == wire.OpGetData {
				bytes += int(stat.DataLength)
			} else {
				bytes += 4*int(stat.NumChildren) + v.Tree().NamesBytes(path)
			}
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

// syncWithin makes the request a sync, if this server does not know that its state is new enough. Those of other
// connections that wait are not joined: this one keeps its place among its connection's requests.
func (r *request) syncWithin(maxStale time.Duration) {
	if maxStale < 0 {
		r.refuse(znode.ErrBadArguments)
		return
	}
	var fresh *server.Freshness
	r.c.listener.srv.View(func(v *server.View) { fresh = v.Fresh() })
	known := false
	if r.asOf, known = fresh.Known(maxStale); !known {
		r.barrier = fresh.Begin()
		r.cmd.Op = state.OpSync
	}
}

// answerStaleness says how old the state is at most now that the reply is made.
func (r *request) answerStaleness(zxid znode.Zxid, code znode.Error) {
	body := wire.SyncWithinResponse{Staleness: r.asOf.Age()}
	r.reply(zxid, code, body.Append)
}
