//go:build interop

package conformance_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// TestConformance_Modes compares the two sides with what is off unless it is configured: reconfig, local sessions that
// may and may not be upgraded, reads without a majority, and another algorithm for digests.
func TestConformance_Modes(t *testing.T) {
	local := []step{a.connect(1), b.connect(2), c.connect(3)}
	for _, mode := range []struct {
		name        string
		config      map[string]string
		script      func() []step
		differences func() []difference
	}{
		{"local sessions and reads without a majority",
			map[string]string{"localSessionsEnabled": "true", "readonlymode.enabled": "true",
				"DigestAuthenticationProvider.digestAlg":   "SHA-256",
				"DigestAuthenticationProvider.superDigest": "super:1kkZs9bldJ9ROJBb1UlvsTItBwStGs8EzgZJVbn+MI8="}, // cluster.SuperCredentials
			func() []step { return slices.Concat(local, otherDigests(), localSessions(), readOnly()) }, localDifferences},
		{"upgraded sessions and reconfig", map[string]string{"localSessionsEnabled": "true",
			"localSessionsUpgradingEnabled": "true", "reconfigEnabled": "true"},
			func() []step { return slices.Concat(local, localSessions(), reconfigs()) }, reconfigDifferences},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			config := settings()
			maps.Copy(config, mode.config)
			theirs := cluster.StartZooKeeper(t, 3, cluster.Options{Quiet: true, ZooKeeper: zookeeper.Oracle, Config: config,
				JavaFlags: []string{"-Dznode.container.checkIntervalMs=" + never,
					"-Dreadonlymode.enabled=" + cmp.Or(config["readonlymode.enabled"], "false")}})
			ours := cluster.Start(t, 3, cluster.Options{Quiet: true, Config: config})
			first(t, theirs)
			first(t, ours)
			want := execute(t, theirs, mode.script())
			got := execute(t, ours, mode.script())
			compare(t, append(differences(), mode.differences()...), mode.script(), want, got)
			ours.CheckReplicas()
		})
	}
}

// first writes something: until then followers have the zxid 0, and the leader another one.
func first(t *testing.T, e *cluster.Ensemble) {
	t.Helper()
	c := e.Server(1).Connect(t, cluster.ConnectOptions{})
	if _, err := c.Do(wire.OpCreate, &wire.CreateRequest{Path: "/first", ACL: znode.OpenACL}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// localSessions create all kinds of znodes in sessions that their servers keep to themselves, and come back to that server
// and to another one.
func localSessions() []step {
	s := []step{a.create("/ls", null, 0), b.addWatch("/ls", recursive)}
	for _, first := range []step{
		d.create("/ls/p", null, 0), d.create("/ls/e", null, znode.Ephemeral), d.create2("/ls/e", null, znode.EphemeralSequential),
		d.createContainer("/ls/c", znode.Container), d.createTTL("/ls/t", znode.PersistentTTL, 3_600_000),
		d.create("/ls", null, znode.Ephemeral), d.create("/none/e", null, znode.Ephemeral), d.create("ls", null, znode.Ephemeral),
		d.multi(d.create("/ls/m", null, 0), d.delete("/ls/m", -1)),
		d.multi(d.create("/ls/m", null, 0), d.create("/ls/me", null, znode.Ephemeral)),
		d.multi(d.check("/ls", 99), d.create("/ls/me", null, znode.Ephemeral)),
		d.multi(d.createTTL("/ls/me", znode.Ephemeral, 1000)),
		d.multi(d.createTTL("/ls/t", znode.PersistentTTL, 3_600_000), d.create("/ls/me", null, znode.Ephemeral)),
		d.multi(d.createContainer("/ls/c", znode.Container), d.create("/ls/me", null, znode.Ephemeral)),
		d.multi(d.createContainer("/ls/c", znode.Ephemeral), d.create("/ls/me", null, znode.Ephemeral)),
		d.set("/ls", str("x"), -1), d.sync("/ls"), d.ephemerals("/"), d.whoAmI(),
		d.burst(d.create("/ls/p", null, 0), d.exists("/ls/e1", false), d.create("/ls/e1", null, znode.Ephemeral)),
	} {
		s = append(s, d.connect(1), d.get("/ls", true), first, d.create("/ls/again", null, znode.Ephemeral), d.ephemerals("/"),
			d.resume(1), d.ephemerals("/"), b.ls2("/ls", false), d.try(2, false), a.ping(), d.try(1, false),
			x.connect(2), x.multi(x.create("/ls/x", null, 0), x.delete("/ls/x", -1)), x.close())
		s = append(s, d.try(1, false), d.do(wire.OpCloseSession, nil), b.ls2("/ls", false))
		for _, name := range []string{"p", "c", "t", "m"} {
			s = append(s, a.delete("/ls/"+name, -1))
		}
	}
	return append(s, b.removeWatches("/ls", znode.WatcherAny))
}

// reconfigs are refused, or change nothing. ZooKeeper looks at the version before all else, and so are their versions right
// unless that is the only mistake.
func reconfigs() []step {
	s := []step{x.connect(1), x.auth("digest", cluster.SuperCredentials), x.getACL("/zookeeper/config"),
		b.get("/zookeeper/config", true), c.addWatch("/zookeeper/config", persistent), a.reconfig("-", "3", "-", -1)}
	for _, q := range [][3]string{
		{"-", "-", "-"}, {"", "-", "-"}, {"-", "", "-"}, {"-", "-", ""}, {"", "", ""},
		{"garbage", "-", "-"}, {"server.4", "-", "-"}, {"server.4=", "-", "-"}, {"server.4=127.0.0.1", "-", "-"},
		{"server.4=127.0.0.1:1:2", "-", "-"}, {"server.x=127.0.0.1:1:2:participant;3", "-", "-"},
		{"server.4=127.0.0.1:x:2:participant;3", "-", "-"}, {"server.4=127.0.0.1:1:2:voter;3", "-", "-"},
		{"-", "x", "-"}, {"-", "1,2,3", "-"}, {"-", "1,2", "-"}, {"-", "99999999999999999999", "-"},
		{"-", "-", "garbage"}, {"-", "-", "server.1=127.0.0.1:1:2:participant;3"}, {"-", "-", "weight.1=2"},
		{"-", "-", "server.1=127.0.0.1:1:2:observer;3"},
	} {
		s = append(s, x.reconfig(q[0], q[1], q[2], -1), c.get("/zookeeper/config", false))
	}
	s = append(s, x.reconfig("-", "3", "-", 77), x.reconfig("-", "3", "-", 0), x.reconfig("-", "3", "-", -2))
	return append(s, x.set("/zookeeper/config", str("x"), -1), x.delete("/zookeeper/config", -1),
		x.create("/zookeeper/config/x", null, 0), a.set("/zookeeper/config", str("x"), -1),
		x.setACL("/zookeeper/config", znode.OpenACL, -1), x.getACL("/zookeeper/config"), x.close(),
		c.removeWatches("/zookeeper/config", znode.WatcherAny))
}

// readOnly asks everything of a server that has no majority, one request after the other: ZooKeeper refuses a write before
// it answers the reads in front of it. Another connection of a session that was opened there is left out: ours end with
// their connections.
func readOnly() []step {
	s := []step{a.create("/ro", str("x"), 0), a.create("/ro/1", null, 0), b.close(), c.close(), a.close(),
		{who: "all", kind: lose}, a.connectReadOnly(1)}
	s = append(s,
		a.get("/ro", true), a.exists("/ro/none", true), a.ls("/ro", true), a.ls2("/ro", false), a.getACL("/ro"),
		a.descendants("/"), a.ephemerals("/"), a.whoAmI(), a.ping(), a.sync("/ro"), a.auth("digest", "user:secret"),
		a.addWatch("/ro", persistent), a.checkWatches("/ro", znode.WatcherPersistent), a.removeWatches("/ro", znode.WatcherAny),
		a.setWatches([]string{"/ro"}, nil, nil), a.setWatches2(nil, nil, nil, []string{"/ro"}, nil),
		a.multiRead(a.get("/ro", false), a.ls("/ro", false)), a.multiRead(),
		a.create("/ro/2", null, 0), a.create2("/ro/2", null, znode.Ephemeral), a.createContainer("/ro/2", znode.Container),
		a.createTTL("/ro/2", znode.PersistentTTL, 1000), a.set("/ro", null, -1), a.delete("/ro/1", -1),
		a.setACL("/ro", znode.OpenACL, -1), a.multi(a.set("/ro", null, -1)), a.multi(), a.create("bad", null, 0),
		a.reconfig("-", "3", "-", -1), a.get("/ro", false))
	return append(s, d.connectReadOnly(1), d.get("/ro", false), d.close(), d.connectReadOnly(1),
		d.try(1, false), x.connectReadOnly(1), x.get("/ro", true), step{who: "all", kind: regain}, x.try(1, true),
		c.connectReadOnly(1), c.get("/ro", false), c.ls2("/ro", false))
}
