package api_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// An ensemble that mirrors ZooKeeper, and cannot reach it, answers reads and stays ready; what ZooKeeper would have to
// carry out, or to confirm, is refused with the reason. When the mirror ends it is as any other.
func TestMirror_ReadsOnly(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 1)
	step := func(s state.MirrorStep, data string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := e.nodes[0].Server().Do(ctx, &state.Command{Op: state.OpMirror, Mirror: s, Data: []byte(data)})
		if err != nil || r.Code != znode.OK {
			t.Fatalf("step %d of a mirror: %v, %v; want success", s, r.Code, err)
		}
	}
	backup := operator(t, e.urls[0]).get("/v1/snapshot").want(200).body
	step(state.MirrorStart, "source")
	c, super := newClient(t, e.urls[0]), operator(t, e.urls[0])
	c.get("/v1/znodes/").want(200)
	c.get("/readyz").want(200).has("status", "ok").contains("it mirrors ZooKeeper")
	super.get("/v1/snapshot").want(200)
	for _, a := range []*answer{
		c.once("POST", "/v1/znodes/a", "x"), c.once("PUT", "/v1/znodes/a", "x"), c.once("DELETE", "/v1/znodes/a"),
		c.once("POST", "/v1/multi", `{"ops": [{"op": "create", "path": "/a"}]}`),
		c.once("POST", "/v1/sessions"),
		c.with("Idempotency-Key: k").once("PUT", "/v1/znodes/a?create=true", "x"),
		c.once("GET", "/v1/znodes/?consistency=linearizable"),
	} {
		a.want(503).contains("this ensemble mirrors ZooKeeper, whose leader is out of reach")
	}
	c.once("POST", "/v1/multi", `{"if": [], "then": [{"op": "get", "path": "/"}]}`).problem(409, "NOTREADONLY").contains("leave out if")
	super.once("POST", "/v1/snapshot", string(backup)).problem(409, "NOTREADONLY").has("title", "mirrors ZooKeeper").
		contains("zk-lite mirror stop")
	step(state.MirrorFault, string(state.AppendFault(nil, 1, "ZooKeeper has lost transactions")))
	c.get("/readyz").want(200).contains("its mirror of ZooKeeper has stopped")
	super.get("/v1/mirror").want(200).has("state", "stopped").has("fault", "ZooKeeper has lost transactions")
	super.get("/metrics").want(200).contains("\nmirror_stopped 1\n")
	step(state.MirrorStop, "")
	c.post("/v1/znodes/a", "x").want(201)
	if a := c.get("/readyz").want(200); a.json["reason"] != nil {
		t.Errorf("ready because %v, want no reason", a.json["reason"])
	}
}

// An ensemble follows through the death of its leader: what a majority has stays, the next leader goes on from there, a
// command of the former one changes nothing, and a server that comes back has the same state.
func TestMirror_LeaderDies(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 3, patient)
	zk := replica.New(znode.NewTree(), session.NewTable(), 5<<32)
	var txns [][]byte
	for i := range 300 {
		txns = append(txns, commitCreate(t, zk, fmt.Sprintf("/n%d", i)))
	}
	leader := func() (i int, term uint64) {
		t.Helper()
		eventually(t, "there is a leader", func() bool {
			i = slices.IndexFunc(e.nodes, func(n *app.Server) bool {
				return n != nil && n.Server().Serving() && n.Server().Status().Role == consensus.RoleLeader
			})
			return i >= 0
		})
		return i, e.nodes[i].Server().Status().Term
	}
	do := func(at int, c state.Command) znode.Error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.Op = state.OpMirror
		r, err := e.nodes[at].Server().Do(ctx, &c)
		if err != nil {
			t.Fatalf("step %d of a mirror: %v", c.Mirror, err)
		}
		return r.Code
	}
	follow := func(term uint64, txns [][]byte) state.Command {
		c := state.Command{Mirror: state.MirrorFollow, Term: term}
		for _, b := range txns {
			c.Data = state.AppendTxn(c.Data, b)
		}
		return c
	}
	first, term := leader()
	for _, c := range append(emptyMirror(t, "source", term), follow(term, txns[:100])) {
		if code := do(first, c); code != znode.OK {
			t.Fatalf("step %d: %v, want success", c.Mirror, code)
		}
	}
	e.stop(first)
	second, next := leader()
	if code := do(second, follow(term, txns[100:200])); code != znode.ErrSessionMoved {
		t.Errorf("a command of the former leader: %v, want %v", code, znode.ErrSessionMoved)
	}
	if code := do(second, follow(next, txns[50:200])); code != znode.OK {
		t.Errorf("the next leader's: %v, want success", code)
	}
	e.start(t, first)
	e.waitReady(t, first)
	if code := do(second, follow(next, txns[200:])); code != znode.OK {
		t.Errorf("with all servers: %v, want success", code)
	}
	for i, n := range e.nodes {
		eventually(t, "it has all transactions", func() (all bool) {
			n.Server().View(func(v *server.View) { all = v.Zxid() == zk.Zxid })
			return all
		})
		n.Server().View(func(v *server.View) {
			x, _ := v.Machine().Mirror()
			got := replica.New(v.Tree(), v.Machine().Sessions(), v.Zxid())
			if x.Compared != 300 || x.Differing != 0 || got.Digest() != zk.Digest() {
				t.Errorf("server %d: %+v, digest %x; want 300 digests, all equal, and %x", i+1, x, got.Digest(), zk.Digest())
			}
		})
	}
}

// emptyMirror has the commands that make the state a mirror without znodes, as of the zxid 0x500000000.
func emptyMirror(t *testing.T, source string, term uint64) []state.Command {
	t.Helper()
	var b bytes.Buffer
	if err := state.WriteMirrored(&b, replica.New(znode.NewTree(), session.NewTable(), 5<<32)); err != nil {
		t.Fatal(err)
	}
	return []state.Command{
		{Op: state.OpMirror, Mirror: state.MirrorStart, Data: []byte(source)},
		{Op: state.OpMirror, Mirror: state.MirrorPart, Term: term, Data: b.Bytes(), Restore: state.RestoreCommand{Upload: 1}},
		{Op: state.OpMirror, Mirror: state.MirrorLoad, Term: term,
			Restore: state.RestoreCommand{Upload: 1, Part: 1, Sum: xxhash.Sum64(b.Bytes())}},
	}
}

// commitCreate creates a znode at zk, and returns the transaction as its leader sends it.
func commitCreate(t *testing.T, zk *replica.Replica, path string) []byte {
	t.Helper()
	b := jute.AppendInt64(jute.AppendInt32(jute.AppendInt64(nil, 0x77), 1), int64(zk.Zxid+1))
	b = jute.AppendInt32(jute.AppendInt64(b, 1_700_000_000_000), int32(replica.OpCreate))
	b = jute.AppendInt32(jute.AppendBuffer(jute.AppendUstring(b, path), []byte("data")), 1)
	b = jute.AppendInt32(b, int32(znode.PermAll))
	b = jute.AppendUstring(jute.AppendUstring(b, znode.Anyone.Scheme), znode.Anyone.ID)
	b = jute.AppendInt32(jute.AppendBool(b, false), -1)
	txn, err := replica.ParseTxn(b)
	if err == nil {
		err = zk.Apply(new(znode.Txn), txn, false)
	}
	if err != nil {
		t.Fatalf("committing the create of %s: %v", path, err)
	}
	return jute.AppendInt64(jute.AppendInt32(b, 2), int64(zk.Digest()))
}
