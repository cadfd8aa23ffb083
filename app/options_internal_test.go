package app

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/consensus/membership"
)

// One setting turns all of it off.
func TestAutopilot_Settings(t *testing.T) {
	want := membership.Autopilot{StableTime: time.Second, RemoveAfter: time.Hour, MinVoters: 5}
	o := Options{Settings: config.Settings{Autopilot: true, Consensus: consensus.Config{Autopilot: want}}}
	if got := o.consensus().Autopilot; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	o.Settings.Autopilot = false
	if got := o.consensus().Autopilot; got != (membership.Autopilot{}) {
		t.Errorf("turned off: %+v", got)
	}
}

// The limits leave room for each other and for everything else; what is set counts.
func TestLimits_FollowTheMemory(t *testing.T) {
	for _, x := range []struct {
		memory, treeSet int64
		pendingSet      int
		tree            int64
		pending         int
	}{
		{0, 0, 0, 0, 0}, // unknown: no limit, and the default of package consensus
		{0, 5 << 20, 2 << 20, 5 << 20, 2 << 20},
		{32 << 20, 0, 0, 4 << 20, 2 << 20},
		{112 << 20, 0, 0, 32 << 20, 7 << 20},
		{32<<20 + 10<<30, 0, 0, 4 << 30, 64 << 20},
		{112 << 20, 64 << 20, 32 << 20, 64 << 20, 32 << 20},
	} {
		o := Options{Memory: x.memory}
		o.Settings.Consensus = consensus.Config{TreeLimit: x.treeSet, MaxPendingBytes: x.pendingSet}
		o.limitByMemory()
		if c := o.Settings.Consensus; c.TreeLimit != x.tree || c.MaxPendingBytes != x.pending {
			t.Errorf("%+v: %d for the tree, %d pending", x, c.TreeLimit, c.MaxPendingBytes)
		}
	}
}

// admin.serverAddress=0.0.0.0 says where the HTTP port listens, as the chart sets it. It was published as where others
// find it.
func TestRegression_Publish_NoHTTPPortAtAllInterfaces(t *testing.T) {
	for at, want := range map[string]string{
		"": "zk1:8080", "0.0.0.0": "zk1:8080", "::": "zk1:8080", "10.0.0.1": "10.0.0.1:8080", "127.0.0.1": "",
	} {
		o := &Options{Settings: config.Settings{
			MyID: 1, AdminEnabled: true, AdminAddress: at, AdminPort: 8080,
			Servers: []config.Server{{ID: 1, Host: "zk1", PeerPort: 2888, ElectionPort: 3888, ClientPort: -1}},
		}}
		if m := publish(o); m.HTTP != want || m.Peer != "zk1:2888:3888" {
			t.Errorf("at %q: %+v, want %q", at, m, want)
		}
	}
}

// Most zoo.cfgs have no client part in their server lines, or 0.0.0.0 there. /zookeeper/config had no address for
// clients then, or one that leads each to himself, and clients that follow it, such as Curator's, had none to go to.
func TestRegression_Publish_ClientAddressOfEverySpelling(t *testing.T) {
	for _, x := range []struct {
		host, lineHost string
		linePort       int
		address        string
		port           int
		want           string
	}{
		{"zk1", "", -1, "", 2181, "zk1:2181"},
		{"zk1", "", 2181, "", 2181, "zk1:2181"},
		{"zk1", "0.0.0.0", 2181, "", 2181, "zk1:2181"},
		{"2001:db8::1", "::", 2181, "", 2181, "[2001:db8::1]:2181"},
		{"zk1", "", -1, "10.0.0.1", 2181, "10.0.0.1:2181"},
		{"zk1", "proxy", 2181, "proxy", 2181, "proxy:2181"},
		{"zk1", "127.0.0.1", 2181, "127.0.0.1", 2181, "127.0.0.1:2181"},
		{"zk1", "", -1, "127.0.0.1", 2181, ""},
		{"127.0.0.1", "", -1, "127.0.0.1", 2181, "127.0.0.1:2181"},
		{"zk1", "", -1, "", 0, ""},
		{"zk1", "", -1, "", config.NoPort, ""},
		{"0.0.0.0", "", -1, "", 2181, "0.0.0.0:2181"}, // until others have said how they call it
	} {
		o := &Options{Settings: config.Settings{
			MyID: 1, ClientPort: x.port, ClientPortAddress: x.address,
			Servers: []config.Server{{ID: 1, Host: x.host, PeerPort: 2888, ElectionPort: 3888,
				ClientHost: x.lineHost, ClientPort: x.linePort}},
		}}
		if m := publish(o); m.Client != x.want {
			t.Errorf("%+v: published %q", x, m.Client)
		}
	}
}
