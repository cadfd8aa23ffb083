package zk

import (
	"slices"
	"strings"

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
