package api_test

import (
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// staleness is an answer's Zk-Max-Stale.
func (a *answer) staleness() time.Duration {
	a.Helper()
	d, err := time.ParseDuration(a.header.Get("Zk-Max-Stale"))
	if err != nil {
		a.Fatalf("Zk-Max-Stale: %q, want a time", a.header.Get("Zk-Max-Stale"))
	}
	return d
}

// A read with max_stale asks the leader only if the server does not know that its state is that new.
func TestMaxStale_AsksOnlyWhenNeeded(t *testing.T) {
	e := fresh(t, 1, func(s *config.Settings) { s.Consensus.CheckInterval = 0 }) // each check takes an entry
	c := newClient(t, e.urls[0])
	eventually(t, "the server has published itself, which takes one, too", func() bool {
		return operator(t, c.url).get("/v1/cluster").want(200).field("level") == float64(state.MaxLevel)
	})
	c.post("/v1/znodes/a", "x").want(201)
	index := func() uint64 { return e.nodes[0].Server().Status().LastIndex }
	before := index()
	var readers sync.WaitGroup
	for range 50 {
		readers.Go(func() { c.get("/v1/znodes/a?max_stale=1h").want(200).staleness() })
	}
	readers.Wait()
	if now := index(); now != before+1 {
		t.Errorf("%d entries for 50 readers, want one that they share", now-before)
	}
	before = index()
	if age := c.get("/v1/znodes/a?max_stale=1h").want(200).staleness(); age > time.Minute {
		t.Errorf("Zk-Max-Stale: %v, want less than the test has taken", age)
	}
	if now := index(); now != before {
		t.Errorf("%d entries for a read that the server could answer, want none", now-before)
	}
	c.get("/v1/znodes/a?max_stale=0s").want(200)
	if now := index(); now == before {
		t.Error("no entry for max_stale=0s, want one")
	}
	if a := c.get("/v1/znodes/a").want(200); a.header.Get("Zk-Max-Stale") != "" {
		t.Errorf("without max_stale: Zk-Max-Stale %q, want none", a.header.Get("Zk-Max-Stale"))
	}
	for _, wrong := range []string{"max_stale=-1s", "max_stale=5", "max_stale=25h", "max_stale=1s&consistency=local"} {
		c.get("/v1/znodes/a?"+wrong).problem(400, "BADARGUMENTS").has("parameter", "max_stale")
	}
}

// A server that has lost the leader answers as long as its state is new enough, and then says how old it may be.
func TestMaxStale_WithoutALeader(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 2)
	c := newClient(t, e.urls[0])
	c.post("/v1/znodes/a", "x").want(201)
	c.get("/v1/znodes/a?max_stale=0s").want(200)
	e.stop(1)
	eventually(t, "it does not serve", func() bool { return c.once("GET", "/v1/znodes/a").status == 503 })
	c.once("GET", "/v1/znodes/a?max_stale=1h").want(200).has("data", "x").staleness()
	c.once("GET", "/v1/znodes/a?max_stale=1ms").problem(503, "CONNECTIONLOSS").has("title", "too stale").
		contains("state may be").contains("consistency=local")
}
