package server

import (
	"testing"

	"github.com/zk-lite/zk-lite/znode"
)

// Who can name itself anew for each connection would get the share of another client for each.
func TestCallerOf(t *testing.T) {
	ip := func(address string) znode.ID { return znode.ID{Scheme: "ip", ID: address} }
	for want, ids := range map[string][]znode.ID{
		"":                   nil,
		"192.0.2.7":          {ip("192.0.2.7"), {Scheme: "digest", ID: "made-up:hash"}},
		"2001:db8:0:1::/64":  {ip("2001:db8:0:1:2:3:4:5")},
		"x509:CN=billing":    {ip("192.0.2.7"), {Scheme: "x509", ID: "CN=billing"}},
		"sasl:billing@REALM": {{Scheme: "sasl", ID: "billing@REALM"}, ip("192.0.2.7")},
	} {
		if got := callerOf(ids); got != want {
			t.Errorf("%v count for %q, want %q", ids, got, want)
		}
	}
}

// Connections count for the client that they have proved to be, and for none once they are closed.
func TestCallers_Connections(t *testing.T) {
	k := newKit(t, nil)
	a, b := k.connect(), k.connect()
	callers := k.srv.callers
	uses := func(name string) int {
		callers.mu.Lock()
		defer callers.mu.Unlock()
		if x := callers.all[name]; x != nil {
			return x.uses
		}
		return 0
	}
	if n := uses("127.0.0.1"); n != 2 {
		t.Errorf("%d connections count for their address, want 2", n)
	}
	a.Conn.AddIdentity(znode.ID{Scheme: "digest", ID: "made-up:hash"})
	b.Conn.AddIdentity(znode.ID{Scheme: "sasl", ID: "billing"})
	if n, m := uses("127.0.0.1"), uses("sasl:billing"); n != 1 || m != 1 {
		t.Errorf("%d connections count for their address and %d for a user, want 1 and 1", n, m)
	}
	a.Conn.Work()
	a.Conn.Close("test")
	b.Conn.Work() // a's turn is over
	b.Conn.Close("test")
	if len(callers.all) != 0 || callers.turns.Waits() {
		t.Errorf("after all connections are closed there are %d clients", len(callers.all))
	}
}
