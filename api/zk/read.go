package zk

import (
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/internal/jute"
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
	r.reply(v.Zxid(), code, len(data)+wire.StatBytes, func(b []byte) []byte {
		return wire.AppendStat(jute.AppendBuffer(b, data), &stat)
	})
}

// exists leaves a watch also on a znode that is missing: that is what it is
// for. It asks for READ on one that is not (ZOOKEEPER-2590).
func (r *request) exists(v *server.View) {
	if strings.IndexByte(r.path, 0) >= 0 {
		r.fail(v.Zxid(), znode.ErrBadArguments)
		return
	}
	stat, code := v.Tree().Exists(r.path, r.ids)
	if r.watch && (code == znode.OK || code == znode.ErrNoNode) {
		if c := r.arm(v, r.path, watch.Data); c != znode.OK {
			code = c
		}
	}
	if b, ok := r.begin(v.Zxid(), code); ok {
		if code == znode.OK {
			b = wire.AppendStat(b, &stat)
		}
		r.end(b)
	}
}

func (r *request) getChildren(v *server.View) {
	names, stat, code := v.Tree().Children(r.path, r.ids)
	if code == znode.OK && r.watch {
		code = r.arm(v, r.path, watch.Child)
	}
	r.reply(v.Zxid(), code, ustringsBytes(names)+wire.StatBytes, func(b []byte) []byte {
		b = jute.AppendUstrings(b, names)
		if r.op == wire.OpGetChildren2 {
			b = wire.AppendStat(b, &stat)
		}
		return b
	})
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
	if b, ok := r.begin(v.Zxid(), code); ok {
		if code == znode.OK {
			b = wire.AppendStat(wire.AppendACLs(b, acl), &stat)
		}
		r.end(b)
	}
}

func (r *request) getAllChildrenNumber(v *server.View) {
	n, code := v.Tree().Descendants(r.path, r.ids)
	if b, ok := r.begin(v.Zxid(), code); ok {
		if code == znode.OK {
			b = jute.AppendInt32(b, int32(n))
		}
		r.end(b)
	}
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
	r.reply(v.Zxid(), znode.OK, ustringsBytes(paths), func(b []byte) []byte { return jute.AppendUstrings(b, paths) })
}

// whoAmI lists the client's identities: names, never hashes. Schemes without
// a provider, such as super, have no name (AuthUtil).
func (r *request) whoAmI(v *server.View) {
	var body wire.WhoAmIResponse
	for _, id := range r.ids {
		info := wire.ClientInfo{AuthScheme: id.Scheme}
		switch id.Scheme {
		case "digest":
			info.User, _, _ = strings.Cut(id.ID, ":")
		case "ip", "x509", "sasl":
			info.User = id.ID
		}
		body.ClientInfo = append(body.ClientInfo, info)
	}
	if b, ok := r.begin(v.Zxid(), znode.OK); ok {
		r.end(body.Append(b))
	}
}

// reconfig is answered as by a ZooKeeper that has not enabled it, which is looked at
// before anything else, standalone or not (PrepRequestProcessor).
func (r *request) reconfig(v *server.View) { r.fail(v.Zxid(), znode.ErrUnimplemented) }

// deleteContainer is what ZooKeeper's leader sends to itself when a container is empty, and no client has a call for:
// it asks for no permission.
func (r *request) deleteContainer(v *server.View) { r.fail(v.Zxid(), znode.ErrUnimplemented) }
