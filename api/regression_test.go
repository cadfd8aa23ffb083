package api_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// A server that has lost its majority, or was removed, learns of no more changes: requests that
// wait there must continue elsewhere, as at a drain, and must not be answered that nothing has
// happened.
func TestRegression_NotServing_EndsWhatWaits(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	var lost atomic.Bool
	srv := shared().nodes[0].Server()
	d, url := serveReplaced(t, shared().nodes[0], faulty{Server: srv, serving: func() bool { return !lost.Load() && srv.Serving() }})
	lock, _ := queueURL(t, "locks")
	election, _ := queueURL(t, "elections")
	holder, waiter := newCoordinator(t, shared().urls[0]), newCoordinator(t, url)
	holder.post(lock, "").want(200)
	holder.post(election, "leader").want(200)

	watch := waiter.stream("/v1/watches" + strings.TrimPrefix(lock, "/v1/locks"))
	events := waiter.stream("/v1/sessions/" + waiter.id + "/events")
	observer := observeElection(waiter.client, election)
	observer.next("leader")
	poll := waiter.later("GET", "/v1/watches/nothing?wait=1m", "")
	queued := waiter.later("POST", lock+"?wait=1m", "")
	eventually(t, "all five wait", func() bool { n, _ := d.Core().Long.Open(); return n == 5 })
	holder.get(lock+"?consistency=linearizable").want(200).has("length", 1)

	lost.Store(true)
	for _, s := range []*stream{watch, events} {
		if last := lastEvent(s); last.name != "reconnect" || last.json["reason"] != "this server has lost touch with a majority" {
			t.Errorf("the last event is %+v", last)
		}
	}
	if e := <-observer.events; e.name != "reconnect" {
		t.Errorf("the last event is %+v", e)
	}
	if n := len((<-poll).want(200).field("events").([]any)); n != 0 {
		t.Errorf("%d events", n)
	}
	(<-queued).want(202).has("position", 1)

	lost.Store(false)
	eventually(t, "a new stream goes on", func() bool { // one that is early is ended with the others
		again := waiter.stream("/v1/watches/nothing")
		for range 2 {
			if e, err := again.next(); err != nil || e.name != "progress" {
				return false
			}
		}
		return true
	})
}

// lastEvent reads a stream to its end.
func lastEvent(s *stream) (last event) {
	for {
		e, err := s.next()
		if err != nil {
			return last
		}
		last = e
	}
}

// The same with a real server that is taken out of the ensemble.
func TestRegression_RemovedServer_EndsStreams(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 3)
	op, c := operator(t, e.urls[0]), newClient(t, e.urls[2])
	op.post("/v1/cluster/transfer", `{"to": 1}`).want(200)
	watch := c.stream("/v1/watches/app?kind=exists")
	observer := observeElection(c, "/v1/elections/app/leader")
	observer.next("")
	op.delete("/v1/cluster/members/3").want(http.StatusNoContent)
	op.post("/v1/znodes/app", "").want(201)
	if last := lastEvent(watch); last.name != "reconnect" {
		t.Errorf("the last event is %+v", last)
	}
	if e := <-observer.events; e.name != "reconnect" {
		t.Errorf("the last event is %+v", e)
	}
}

// A tree without a limit filled the memory of all servers. A full tree now refuses additions, with a problem that names
// the reason, and accepts what frees memory.
func TestRegression_NoRoom_GrowthIs507(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 1, func(s *config.Settings) { s.Consensus.TreeLimit = 300_000 })
	c := newClient(t, e.urls[0])
	large := strings.Repeat("x", 100_000)
	c.post("/v1/znodes/a", large).want(201)
	c.post("/v1/znodes/b", large).want(201)
	memory := func() any {
		for _, check := range c.get("/readyz?verbose=true").want(200).field("checks").([]any) {
			if m := check.(map[string]any); m["name"] == "memory" {
				return m["ok"]
			}
		}
		return nil
	}
	if memory() != true {
		t.Error("readyz says that there is no room")
	}
	c.post("/v1/znodes/c", large).problem(507, "SYSTEMERROR").contains("nothing was done")
	multi := `{"ops":[{"op":"create","path":"/d","data":"` + large + `"},{"op":"delete","path":"/nobody"}]}`
	c.post("/v1/multi", multi).problem(507, "SYSTEMERROR")
	c.with("Idempotency-Key: k").put("/v1/znodes/a", large+large).problem(507, "SYSTEMERROR")
	c.put("/v1/znodes/a", strings.ToUpper(large)).want(200)
	if memory() != false {
		t.Error("readyz does not say that there is no room")
	}
	c.get("/metrics").want(200).contains("tree_memory_limit_bytes 300000").contains("refused_writes_total 3")
	c.delete("/v1/znodes/b").want(204)
	c.with("Idempotency-Key: k").post("/v1/znodes/c", large).want(201)

	// A server that starts with more than it may have serves, and only that.
	e.stop(0)
	e.settings[0].Consensus.TreeLimit = 100_000
	e.start(t, 0)
	e.waitReady(t, 0)
	c.get("/v1/znodes/a").want(200).has("stat.dataLength", 100_000)
	c.post("/v1/znodes/d", "").problem(507, "SYSTEMERROR")
	c.delete("/v1/znodes/a").want(204)
	c.delete("/v1/znodes/c").want(204)
	c.post("/v1/znodes/d", "").want(201)
}

// A server that was removed, or is not yet a member, answered for the ensemble: without a leader, or without such a
// server.
func TestRegression_Cluster_WhoTakesNoPartSaysSo(t *testing.T) {
	for title, change := range map[string]func(*consensus.Status){
		"halted: removed": func(s *consensus.Status) {
			s.Halt = &consensus.Halt{Kind: selfcheck.Removed, Reason: "it was removed"}
		},
		"no ensemble yet": func(s *consensus.Status) { s.Ensemble = [16]byte{} },
	} {
		_, url := serveReplaced(t, shared().nodes[0], changedStatus{shared().nodes[0].Server(), change})
		op := operator(t, url)
		for _, a := range []*answer{
			op.get("/v1/cluster"), op.post("/v1/cluster/members", "{}"), op.delete("/v1/cluster/members/2"),
			op.post("/v1/cluster/members/3/token", ""), op.post("/v1/cluster/transfer", ""), op.put("/v1/cluster/level", "{}"),
		} {
			if a.want(503).has("title", title); a.header.Get("Retry-After") != "" {
				t.Errorf("%s: headers %v, want no Retry-After", a.what, a.header)
			}
		}
	}
}
