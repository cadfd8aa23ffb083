package api_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/znode"
)

// A take-over is planned and refused at any server, with what is in the way and what to do, and changes nothing then.
func TestTakeover_Refused(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 3)
	origin, err := net.Listen("tcp", "127.0.0.1:0") // silent: no ZooKeeper answers there
	if err != nil {
		t.Fatal(err)
	}
	defer origin.Close()
	leader := e.leading(t)
	c := operator(t, e.urls[(leader+1)%3])
	c.get("/v1/takeover").want(200).has("ready", false).has("unmet.0.what", "nothing is mirrored")
	c.post("/v1/takeover", `{"receipts":[]}`).want(404).contains("POST /v1/mirror begins one")
	c.post("/v1/mirror", fmt.Sprintf(`{"from":["%s"]}`, origin.Addr())).want(200)
	eventually(t, "the leader has applied the beginning, too", func() bool {
		return c.get("/v1/mirror").want(200).text("state") != "off"
	})
	c.get("/v1/takeover").want(200).has("ready", false).has("unmet.0.what", "the state is not loaded").has("need", 1)
	for doc, title := range map[string]string{
		`{"receipts":[]}`:              "too few are fenced",
		`{"receipts":[],"force":true}`: "not loaded",
	} {
		c.post("/v1/takeover", doc).want(409).has("title", title)
	}
	for _, doc := range []string{`{"receipts":[null]}`, `{"receipts":[{"format":1,"server":1,"sum":"0"}]}`} {
		c.post("/v1/takeover", doc).problem(400, "BADARGUMENTS").has("parameter", "receipts")
	}
	c.post("/v1/takeover", `{"receipts":[{"zxid":"-1"}]}`).want(400)
	c.get("/v1/mirror").want(200).has("loaded", false)
	newClient(t, e.urls[0]).get("/v1/takeover").want(401)
	newClient(t, e.urls[0]).post("/v1/takeover", `{"receipts":[]}`).want(401)
	gone := (leader + 1) % 3
	e.stop(gone)
	eventually(t, "the plan misses the server", func() bool {
		a := operator(t, e.urls[leader]).get("/v1/takeover").want(200)
		return strings.Contains(string(a.body), fmt.Sprintf("server %d of zk-lite is not connected", gone+1))
	})
}

// A take-over is recorded: to repeat it changes nothing and says so, and the plan and the mirror show it. An ensemble
// that has taken over nothing does not say that it has.
func TestTakeover_Recorded(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 1)
	c, forced := operator(t, e.urls[0]), `{"receipts":[],"force":true}`
	c.post("/v1/takeover", forced).want(404).contains("no ensemble is mirrored, and nothing was taken over")
	srv := e.nodes[0].Server()
	for _, cmd := range emptyMirror(t, "127.0.0.1:1", srv.Status().Term) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := srv.Do(ctx, &cmd)
		if cancel(); err != nil || r.Code != znode.OK {
			t.Fatalf("step %d of a mirror: %v, %v; want success", cmd.Mirror, r.Code, err)
		}
	}
	at := c.post("/v1/takeover", forced).want(200).has("already", false).has("tail", 0).text("time")
	c.post("/v1/takeover", forced).want(200).has("already", true).has("time", at)
	for _, target := range []string{"/v1/takeover", "/v1/mirror"} {
		c.get(target).want(200).has("taken_over.from.0", "127.0.0.1:1").has("taken_over.time", at).has("taken_over.forced", true)
	}
	c.post("/v1/znodes/a", "x").want(201)
}
