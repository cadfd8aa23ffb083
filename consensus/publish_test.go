package consensus

import (
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// In its own line a server may be 0.0.0.0, which says where it listens. It published that, in the place of the name by
// which the others knew it: clients that follow /zookeeper/config were sent to themselves.
func TestRegression_Publish_TheNameThatOthersHave(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	for name, own := range map[string]string{"IPv4": "0.0.0.0", "IPv6": "[::]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := prepare(t, 3, nil)
			e.change = func(c *Config) {
				addr := e.servers[c.ID].Addr
				if c.ID == 0 {
					c.Servers = slices.Clone(c.Servers)
					addr = strings.Replace(addr, "127.0.0.1", own, 1)
					c.Servers[0].Addr = addr
				}
				c.Publish = &state.Member{ID: c.ID, Version: "1", Peer: addr + ":3888", Client: addr,
					HTTP: addr}
			}
			for i := range 3 {
				e.mustStart(i)
			}
			at := e.servers[0].Addr
			named := func() bool {
				m := e.nodes[1].Ensemble().Members()[0]
				if strings.HasPrefix(m.Peer, own) {
					t.Fatalf("it has published %+v", m)
				}
				return m.Version == "1" && m.Peer == at+":3888" && m.HTTP == at && m.Client == at
			}
			wait.Until(t, "the name that the others have", named)
			e.stop(0)
			e.mustStart(0)
			e.must(0, "/a")
			if !named() {
				t.Errorf("after a restart: %+v", e.nodes[1].Ensemble().Members()[0])
			}
		})
	}
}

func TestWithHost(t *testing.T) {
	for _, x := range []struct{ peer, at, wantPeer, wantAt string }{
		{"0.0.0.0:1:2", "0.0.0.0:3", "zk1:1:2", "zk1:3"},
		{"[::]:1:2", "[::]:3", "zk1:1:2", "zk1:3"},
		{"localhost:1:2", "localhost:3", "zk1:1:2", "zk1:3"},
		{"0.0.0.0:1:2", "10.0.0.1:3", "zk1:1:2", "10.0.0.1:3"},
		{"0.0.0.0:1:2", "", "zk1:1:2", ""},
	} {
		m := withHost(state.Member{Peer: x.peer, Client: x.at, HTTP: x.at}, "zk1")
		if m.Peer != x.wantPeer || m.Client != x.wantAt || m.HTTP != x.wantAt {
			t.Errorf("%s, %s: published %s, %s, %s; want %s, %s", x.peer, x.at, m.Peer, m.Client, m.HTTP,
				x.wantPeer, x.wantAt)
		}
	}
}
