//go:build interop

package conformance_test

import (
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	persistent = wire.AddWatchPersistent
	recursive  = wire.AddWatchPersistentRecursive
)

func watches() []step {
	return []step{
		a.create("/w", str("0"), 0), a.get("/w", true), b.get("/w", true), b.get("/w", true),
		c.exists("/w", true), c.get("/w", true), a.set("/w", str("1"), -1), a.set("/w", str("2"), -1),
		a.get("/w", true), a.setACL("/w", znode.OpenACL, -1), a.set("/w", null, 99), a.delete("/w", 99),
		a.create("/w/1", null, 0), a.delete("/w/1", -1), b.delete("/w", -1), a.get("/w", true),
		a.create("/w", null, 0), a.ls("/none", true), a.create("/none", null, 0), a.delete("/none", -1),
		// The writer's own watch comes before the reply to what it caused.
		a.burst(a.get("/w", true), a.set("/w", str("x"), -1), a.get("/w", true), a.delete("/w", -1)),
	}
}

func existWatches() []step {
	return []step{
		a.exists("/ew", true), b.exists("/ew", true), c.create("/ew", null, 0), c.set("/ew", null, -1),
		a.exists("/ew", true), c.set("/ew", null, -1), a.exists("/ew", true), b.exists("/ew", true),
		c.delete("/ew", -1), a.exists("/ew", true), a.exists("/ew/deep/down", true),
		c.multi(c.create("/ew", null, 0), c.set("/ew", str("1"), -1), c.delete("/ew", -1)),
		a.exists("/ew", true), c.multi(c.create("/ew", null, 0), c.check("/ew", 5)),
		c.create("/ew", null, znode.Ephemeral), c.delete("/ew", -1),
	}
}

func childWatches() []step {
	return []step{
		a.create("/cw", null, 0), a.ls("/cw", true), b.ls2("/cw", true), c.exists("/cw", true),
		a.set("/cw", null, -1), a.create("/cw/1", null, 0), a.ls("/cw", true), a.set("/cw/1", null, -1),
		a.create("/cw/1/1", null, 0), a.delete("/cw/1/1", -1), a.delete("/cw/1", -1),
		a.ls("/cw", true), a.get("/cw", true), b.ls("/cw", true), c.delete("/cw", -1),
		a.create("/cw", null, 0), a.ls("/cw", true), a.get("/cw", true), b.exists("/cw/x", true),
		c.multi(c.create("/cw/x", null, 0), c.create("/cw/y", null, 0), c.set("/cw", null, -1)),
		a.ls("/cw", true), c.multi(c.create("/cw/z", null, 0), c.delete("/cw/z", -1)),
	}
}

// persistentWatches leaves no second kind of watch on a path: before 3.9, the
// last one takes the place of the others (ZOOKEEPER-4466).
func persistentWatches() []step {
	return []step{
		a.create("/pw", null, 0), a.addWatch("/pw", persistent), b.addWatch("/pw", recursive),
		c.addWatch("/pw/none", persistent), c.addWatch("/pw", 2), c.addWatch("/pw", -1),
		a.set("/pw", str("1"), -1), a.set("/pw", str("2"), -1), a.create("/pw/1", null, 0),
		a.create("/pw/1/2", null, 0), a.set("/pw/1/2", null, -1), a.delete("/pw/1/2", -1),
		a.create("/pw/none", null, 0), a.create("/pw/none/x", null, 0), a.delete("/pw/none/x", -1),
		a.set("/pw", str("3"), -1), a.set("/pw/1", str("3"), -1),
		a.create("/pw/3", null, 0), a.delete("/pw/1", -1),
		a.create("/pw/4", null, 0), c.addWatch("/", recursive),
		a.set("/pw/4", null, -1), a.delete("/pw/4", -1), a.setACL("/pw", znode.OpenACL, -1),
		a.multi(a.create("/pw/5", null, 0), a.set("/pw", null, -1), a.delete("/pw/5", -1)),
		c.removeWatches("/", znode.WatcherAny), a.create("/pw/6", null, znode.Ephemeral),
		x.connect(1), x.addWatch("/pw", recursive), x.create("/pw/7", null, znode.Ephemeral), x.close(),
		a.delete("/pw/3", -1), a.addWatch("", recursive), a.addWatch("no", persistent),
		a.delete("/pw/6", -1), a.delete("/pw/none", -1), a.delete("/pw", -1), a.create("/pw", null, 0),
		a.removeWatches("/pw", znode.WatcherAny), b.removeWatches("/pw", znode.WatcherAny),
		c.removeWatches("/pw/none", znode.WatcherAny), a.set("/pw", null, -1),
		a.removeWatches("", znode.WatcherAny), a.removeWatches("no", znode.WatcherAny),
	}
}

// removing leaves out what 3.8 does not know: the types of persistent watches,
// and that a persistent watch is no data or child watch.
func removing() []step {
	s := []step{a.create("/rw", null, 0)}
	for _, arm := range []struct {
		steps []step
		kinds []znode.WatcherType
	}{
		{nil, []znode.WatcherType{1, 2, 3, 0, 6}},
		{[]step{a.get("/rw", true)}, []znode.WatcherType{1, 2, 3, 0, 6}},
		{[]step{a.exists("/rw", true)}, []znode.WatcherType{1, 2, 3, 0, 6}},
		{[]step{a.ls("/rw", true)}, []znode.WatcherType{1, 2, 3, 0, 6}},
		{[]step{a.get("/rw", true), a.ls("/rw", true)}, []znode.WatcherType{1, 2, 3, 0, 6}},
		{[]step{a.addWatch("/rw", persistent)}, []znode.WatcherType{3, 0, 6}},
		{[]step{a.addWatch("/rw", recursive)}, []znode.WatcherType{3, 0, 6}},
	} {
		for _, kind := range arm.kinds {
			s = append(s, arm.steps...)
			s = append(s, a.checkWatches("/rw", kind), a.removeWatches("/rw", kind),
				a.checkWatches("/rw", znode.WatcherAny), b.set("/rw", null, -1),
				b.create("/rw/1", null, 0), b.delete("/rw/1", -1),
				a.removeWatches("/rw", znode.WatcherAny), a.removeWatches("/rw/none", kind))
		}
	}
	return s
}

func rearming() []step {
	all := []string{"/rearm", "/rearm/1", "/rearm/2", "/rearm/3", "/rearm/4"}
	change := []step{
		b.set("/rearm/1", str("x"), -1), b.delete("/rearm/2", -1), b.create("/rearm/3", null, 0),
		b.create("/rearm/1/new", null, 0),
	}
	s := []step{b.create("/rearm", null, 0), b.create("/rearm/1", null, 0), b.create("/rearm/2", null, 0)}
	s = append(s, d.connect(3), d.get("/rearm", true), d.drop())
	s = append(s, change...)
	// Another server than before; each list has paths of every fate.
	s = append(s, d.resume(1), d.setWatches(all, all, all))
	s = append(s, b.set("/rearm/1", null, -1), b.set("/rearm/3", null, -1), b.create("/rearm/4", null, 0),
		b.create("/rearm/2", null, 0), b.delete("/rearm/1/new", -1), b.set("/rearm", null, -1),
		d.drop(), b.set("/rearm/1", null, -1), d.resume(2),
		d.setWatches2([]string{"/rearm/1"}, []string{"/rearm/none", "/rearm/1"},
			[]string{"/rearm"}, []string{"/rearm/2", "/rearm/3"}, []string{"/other"}),
		b.set("/rearm/1", null, -1), b.create("/rearm/none", null, 0), b.delete("/rearm/none", -1),
		b.set("/rearm", null, -1), b.delete("/rearm/4", -1), d.setWatches(nil, nil, nil),
		d.setWatches2(nil, nil, nil, nil, nil), d.drop(), d.resume(2), b.set("/rearm", null, -1))
	return append(s, d.close())
}

// watchACLs: a client that may not read a znode does not learn of its changes.
func watchACLs() []step {
	s := []step{x.connect(1), x.auth("digest", cluster.SuperCredentials), x.create("/wa", null, 0)}
	for _, perm := range []znode.Perms{0, 1, 2, 30} {
		s = append(s, x.createACL("/wa/n", null, 0, acl(perm, "world", "anyone")),
			b.addWatch("/wa/n", recursive), c.addWatch("/wa/n", persistent), a.exists("/wa/n/m", true),
			x.set("/wa/n", null, -1), x.create("/wa/n/m", null, 0),
			x.set("/wa/n/m", null, -1), x.delete("/wa/n/m", -1),
			x.createACL("/wa/n/m", null, 0, acl(perm, "world", "anyone")), x.delete("/wa/n/m", -1),
			x.delete("/wa/n", -1), b.removeWatches("/wa/n", znode.WatcherAny),
			c.removeWatches("/wa/n", znode.WatcherAny))
	}
	return append(s, x.close())
}
