//go:build interop

package migration_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// worker is one client of a load, with a subtree of its own.
type worker struct {
	*load
	base  string
	rand  *rand.Rand
	conn  *cluster.Conn
	sent  []sent
	nodes []string // znodes that probably exist
	n     int      // of the request
	due   float64  // requests that the rate permits
}

// sent is a request without an answer yet.
type sent struct {
	request
	call *cluster.Call
}

// request is one of a worker's. Its keep is a znode that stays as it is once the request is acknowledged.
type request struct {
	name string
	op   wire.OpCode
	body wire.Request
	keep string
}

func (w *worker) run() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !w.stopped() {
		if w.conn == nil || w.conn.Err() != nil {
			w.drain(0)
			if !w.connect() {
				return
			}
		}
		if w.rate > 0 {
			for ; w.due < 1; w.due += float64(w.rate) / float64(w.workers) / 100 {
				<-tick.C
			}
			w.due--
		}
		q := w.next()
		w.asks(q.body)
		w.sent = append(w.sent, sent{q, w.conn.Send(q.op, q.body)})
		w.drain(ahead)
	}
	w.drain(0)
	if w.rand.IntN(2) == 0 {
		_ = w.conn.Close() // a server may have been killed
	}
	w.conn.Drop()
}

// connect resumes the session, or opens one.
func (w *worker) connect() bool {
	o := cluster.ConnectOptions{Timeout: 4 * time.Second}
	first := w.conn == nil
	if !first {
		o.Session = w.conn.State()
	}
	if w.conn = w.dial(w.rand, o); w.conn == nil {
		return false
	}
	w.conn.Send(wire.OpCreate, create(w.base, nil, znode.Persistent))
	if first {
		w.quota()
	}
	return true
}

// quota sets one as zkCli.sh does: the servers keep its statistics themselves.
func (w *worker) quota() {
	dir := znode.QuotaPath + w.base
	limits := "count=10000000,bytes=-1"
	if w.rand.IntN(2) == 0 && !w.old {
		limits = "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=10000000"
	}
	for _, q := range []*wire.CreateRequest{
		create(dir, nil, znode.Persistent),
		create(dir+"/zookeeper_limits", []byte(limits), znode.Persistent),
		create(dir+"/zookeeper_stats", []byte("count=0,bytes=0"), znode.Persistent),
	} {
		w.conn.Send(wire.OpCreate, q)
	}
}

// drain waits until no more than n requests are without an answer.
func (w *worker) drain(n int) {
	for len(w.sent) > n {
		s := w.sent[0]
		w.sent = w.sent[1:]
		body, err := s.call.Wait()
		if results, ok := body.(*wire.MultiResponse); ok {
			for i := range results.Results {
				if results.Results[i].Type == wire.OpError {
					err = znode.ErrRuntimeInconsistency
				}
			}
		}
		w.count(s.name, err)
		if s.keep != "" && err == nil {
			w.mu.Lock()
			w.kept[s.keep] = string(s.body.(*wire.CreateRequest).Data)
			w.mu.Unlock()
		}
		if w.n%1000 == 0 {
			w.conn.Take() // forgets what it has received
		}
	}
}

func create(path string, data []byte, mode znode.Mode) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: data, ACL: znode.OpenACL, Mode: mode}
}

func acl(perms znode.Perms, scheme, id string) znode.ACL {
	return znode.ACL{Perms: perms, ID: znode.ID{Scheme: scheme, ID: id}}
}

// acl is a list of any kind that the servers take.
func (w *worker) acl() []znode.ACL {
	lists := [][]znode.ACL{
		{acl(znode.PermRead, "world", "anyone")}, {acl(znode.PermAll, "digest", "bob:xyz=")},
		{acl(znode.PermAll, "auth", "")},
		{acl(3, "ip", "10.0.0.0/8"), acl(znode.PermAll, "world", "anyone")}, {acl(31, "digest", "jürgen:Ünicode=")},
		{acl(0, "digest", "none:at all")}, {acl(1, "ip", "192.168.7.9")},
	}
	if !w.strict {
		lists = append(lists, []znode.ACL{acl(16, "digest", fmt.Sprintf("u%s:%d=", w.base, w.n))})
	}
	if k := w.rand.IntN(3 * len(lists)); k < len(lists) {
		return lists[k]
	}
	return znode.OpenACL
}

func (w *worker) data() []byte {
	switch k := w.rand.IntN(500); {
	case k < 60:
		return nil
	case k < 120:
		return []byte{}
	case k == 499:
		return []byte(strings.Repeat("large ", w.rand.IntN(60_000)))
	}
	b := make([]byte, w.rand.IntN(200))
	for i := range b {
		b[i] = byte(w.rand.Uint32())
	}
	return b
}

// some is one of the znodes that probably exist.
func (w *worker) some() string {
	if len(w.nodes) == 0 {
		return w.base + "/absent"
	}
	return w.nodes[w.rand.IntN(len(w.nodes))]
}

// fresh is a path that has not been used.
func (w *worker) fresh() string {
	if w.rand.IntN(30) == 0 {
		return fmt.Sprintf("%s/ü %%日本\"é-%d", w.base, w.n)
	}
	return fmt.Sprintf("%s/n%d", w.base, w.n)
}

// next chooses a request.
func (w *worker) next() (q request) {
	w.n++
	data, fresh, some := w.data(), w.fresh(), w.some()
	made := &wire.CreateRequest{Path: fresh, Data: data, ACL: w.acl()}
	grows := ""
	switch k := w.rand.IntN(100); {
	case k < 10:
		q, grows = request{name: "create", op: wire.OpCreate, body: made}, fresh
	case k < 14:
		made.Path = w.base + "/kept" + fresh[len(w.base)+1:]
		q = request{name: "create", op: wire.OpCreate, body: made, keep: made.Path}
	case k < 19:
		made.Path, made.Mode = w.base+"/s-", znode.PersistentSequential
		q = request{name: "create sequential", op: wire.OpCreate, body: made}
	case k < 21: // where the counter is at its end
		q = request{name: "create in /wrap", op: wire.OpCreate, body: create("/wrap/s", data,
			znode.PersistentSequential)}
	case k < 26:
		made.Mode = znode.Mode(1 + 2*w.rand.IntN(2))
		q, grows = request{name: "create ephemeral", op: wire.OpCreate, body: made}, fresh
	case k < 29:
		made.Path = some + "/c"
		q, grows = request{name: "create below", op: wire.OpCreate, body: made}, made.Path
	case k < 40:
		q, grows = w.create2(made), fresh
	case k < 52:
		q = request{name: "setData", op: wire.OpSetData, body: &wire.SetDataRequest{Path: some, Data: data,
			Version: -1}}
	case k < 60:
		q = request{name: "setACL", op: wire.OpSetACL, body: &wire.SetACLRequest{Path: some, ACL: w.acl(), Version: -1}}
	case k < 75:
		q = request{name: "delete", op: wire.OpDelete, body: &wire.DeleteRequest{Path: some, Version: -1}}
	case k < 83:
		q, grows = request{name: "multi", op: wire.OpMulti, body: w.multi(made)}, fresh
	case k < 87:
		q = request{name: "multi", op: wire.OpMulti, body: ops(made, &wire.SetDataRequest{Path: w.base, Version: -1},
			&wire.CheckRequest{Path: w.base, Version: -7}, &wire.DeleteRequest{Path: fresh, Version: -1})}
	default:
		q = w.odd(made)
	}
	if grows != "" {
		if w.nodes = append(w.nodes, grows); len(w.nodes) > 3000 {
			w.nodes = w.nodes[500:]
		}
	}
	return q
}

// create2 is one of the creates that 3.5 added.
func (w *worker) create2(made *wire.CreateRequest) request {
	k := w.rand.IntN(10)
	switch {
	case w.old:
		return request{name: "create", op: wire.OpCreate, body: made}
	case k < 4:
		return request{name: "create2", op: wire.OpCreate2, body: made}
	case k < 7:
		made.Mode = znode.Container
		return request{name: "create container", op: wire.OpCreateContainer, body: made}
	}
	ttl := &wire.CreateTTLRequest{Path: made.Path, Data: made.Data, ACL: made.ACL, TTLMillis: longTTL + int64(k),
		Mode: znode.PersistentTTL}
	if k == 8 {
		ttl.TTLMillis = int64(1 + w.rand.IntN(2000))
	} else if k == 9 {
		ttl.Mode = znode.PersistentSequentialTTL
	}
	return request{name: "create with TTL", op: wire.OpCreateTTL, body: ttl}
}

// longTTL is one that does not end during a test, in milliseconds.
const longTTL = 10_000_000

func ops(all ...wire.Request) *wire.MultiRequest {
	m := new(wire.MultiRequest)
	for _, q := range all {
		op := wire.OpCreate
		switch q.(type) {
		case *wire.DeleteRequest:
			op = wire.OpDelete
		case *wire.SetDataRequest:
			op = wire.OpSetData
		case *wire.CheckRequest:
			op = wire.OpCheck
		case *wire.CreateTTLRequest:
			op = wire.OpCreateTTL
		}
		m.Ops = append(m.Ops, wire.MultiOp{Type: op, Request: q})
	}
	return m
}

// multi is one that succeeds.
func (w *worker) multi(made *wire.CreateRequest) *wire.MultiRequest {
	path := made.Path
	m := ops(made, create(path+"e", nil, znode.Ephemeral), create(path+"/k", nil, znode.PersistentSequential),
		&wire.SetDataRequest{Path: path, Data: w.data(), Version: 0}, &wire.CheckRequest{Path: path, Version: 1},
		&wire.DeleteRequest{Path: path + "e", Version: -1})
	if !w.old {
		more := ops(&wire.CreateTTLRequest{Path: path + "t", ACL: w.acl(), TTLMillis: longTTL,
			Mode: znode.PersistentTTL},
			create(path+"q", nil, znode.Container), create(path+"q/x", nil, znode.Persistent),
			create(path+"r", nil, znode.Persistent))
		more.Ops[1].Type, more.Ops[3].Type = wire.OpCreateContainer, wire.OpCreate2
		m.Ops = append(m.Ops, more.Ops...)
	}
	return m
}

// odd is a request that fails, or that is rare.
func (w *worker) odd(made *wire.CreateRequest) request {
	switch k := w.rand.IntN(14); {
	case k < 2:
		return request{name: "setData", op: wire.OpSetData, body: &wire.SetDataRequest{Path: w.some(), Version: 77777}}
	case k < 4:
		return request{name: "create", op: wire.OpCreate, body: create(w.base, nil, znode.Persistent)}
	case k == 4:
		return request{name: "delete", op: wire.OpDelete, body: &wire.DeleteRequest{Path: w.base, Version: -1}}
	case k == 5:
		made.ACL = []znode.ACL{acl(31, "of no server", "x")}
	case k == 6:
		made.Path = w.base + "//x"
	case k == 7 && !w.old:
		return request{name: "deleteContainer", op: wire.OpDeleteContainer,
			body: &wire.DeleteContainerRequest{Path: w.some()}}
	case k == 8 && w.root:
		return request{name: "setData of /", op: wire.OpSetData, body: &wire.SetDataRequest{Path: "/",
			Data: w.data(), Version: -1}}
	case k == 9:
		made.Path, made.Mode = fmt.Sprintf("/r%s-%d", w.base[1:], w.n), znode.Ephemeral
	case k == 10: // deep
		m := new(wire.MultiRequest)
		for path := made.Path; len(m.Ops) < 30; path += "/d" {
			m.Ops = append(m.Ops, wire.MultiOp{Type: wire.OpCreate, Request: create(path, nil, znode.Persistent)})
		}
		return request{name: "multi", op: wire.OpMulti, body: m}
	default:
		return request{name: "setACL", op: wire.OpSetACL, body: &wire.SetACLRequest{Path: w.some(),
			ACL: znode.OpenACL, Version: 9999}}
	}
	return request{name: "create", op: wire.OpCreate, body: made}
}
