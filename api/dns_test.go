package api_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// DNS answers from what a server has, also without a majority; not before it has caught up, and not when it is drained
// or halted: then other servers are asked.
func TestDNS_Majority(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := fresh(t, 3, func(s *config.Settings) { s.DNSPort = 0 })
	c := newCoordinator(t, e.urls[0])
	c.put("/v1/groups/app/members/m", "10.0.0.1:80").want(201)
	lookUp := func(i int) string {
		t.Helper()
		r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, e.nodes[i].DNSAddr().String())
		}}
		all, err := r.LookupHost(t.Context(), "m.app.zk-lite.internal.")
		var failed *net.DNSError
		switch {
		case errors.As(err, &failed) && failed.IsTemporary && !failed.IsNotFound:
			return "SERVFAIL"
		case err != nil || len(all) != 1:
			return "not found"
		}
		return all[0]
	}
	for i := range 3 {
		eventually(t, "the member is found", func() bool { return lookUp(i) == "10.0.0.1" })
	}
	if err := e.nodes[2].Server().Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := lookUp(2); got != "SERVFAIL" {
		t.Errorf("of a drained server the member is %s, want SERVFAIL", got)
	}
	e.stop(2)
	e.stop(1)
	eventually(t, "the majority is lost", func() bool { return !e.nodes[0].Server().Serving() })
	if got := lookUp(0); got != "10.0.0.1" {
		t.Errorf("without a majority the member is %s, want 10.0.0.1", got)
	}
	e.stop(0)
	e.start(t, 0)
	if got := lookUp(0); got != "SERVFAIL" {
		t.Errorf("before the server has caught up the member is %s, want SERVFAIL", got)
	}
	e.start(t, 1)
	e.waitReady(t, 0)
	e.waitReady(t, 1)
	if got := lookUp(0); got != "10.0.0.1" { // its session has not ended
		t.Errorf("after that the member is %s, want 10.0.0.1", got)
	}
}
