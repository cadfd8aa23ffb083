package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/znode"
)

// An ensemble whose state is a copy of ZooKeeper's answers reads and stays ready, and refuses whatever would change the
// state, with what to do. When that ends it is as any other.
func TestMirror_ReadsOnly(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 1)
	step := func(s state.MirrorStep) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := e.nodes[0].Server().Do(ctx, &state.Command{Op: state.OpMirror, Mirror: s, Data: []byte("source")})
		if err != nil || r.Code != znode.OK {
			t.Fatalf("step %d of a mirror: %v, %v; want success", s, r.Code, err)
		}
	}
	backup := operator(t, e.urls[0]).get("/v1/snapshot").want(200).body
	step(state.MirrorStart)
	c, super := newClient(t, e.urls[0]), operator(t, e.urls[0])
	c.get("/v1/znodes/").want(200)
	c.get("/v1/znodes/?consistency=linearizable").want(200)
	c.get("/readyz").want(200).has("status", "ok").contains("it mirrors ZooKeeper")
	super.get("/v1/snapshot").want(200)
	for _, a := range []*answer{
		c.once("POST", "/v1/znodes/a", "x"), c.once("PUT", "/v1/znodes/a", "x"), c.once("DELETE", "/v1/znodes/a"),
		c.once("POST", "/v1/multi", `{"ops": [{"op": "create", "path": "/a"}]}`),
		c.once("POST", "/v1/sessions"),
		c.with("Idempotency-Key: k").once("PUT", "/v1/znodes/a?create=true", "x"),
		super.once("POST", "/v1/snapshot", string(backup)),
	} {
		a.problem(409, "NOTREADONLY").has("title", "mirrors ZooKeeper").contains("zk-lite mirror stop")
	}
	step(state.MirrorStop)
	c.post("/v1/znodes/a", "x").want(201)
	if a := c.get("/readyz").want(200); a.json["reason"] != nil {
		t.Errorf("ready because %v, want no reason", a.json["reason"])
	}
}
