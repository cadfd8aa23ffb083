//go:build interop

package conformance_test

import (
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func multis() []step {
	return []step{
		a.multi(), a.multi(a.create("/m", str("m"), znode.Persistent)),
		a.multi(a.create("/m/1", null, 0), a.create2("/m/1/1", str("x"), 0), a.set("/m/1", str("y"), 0),
			a.check("/m/1", 1), a.delete("/m/1/1", 0)),
		a.ls2("/m", false), a.get("/m/1", false),
		a.multi(a.create("/m/s-", null, 2), a.create("/m/s-", null, 2), b.create2("/m/s-", null, 3)),
		a.multi(a.createContainer("/m/c", 4), a.createTTL("/m/t", 5, 1000000), a.createTTL("/m/t-", 6, 1000000)),
		a.exists("/m/c", false), a.exists("/m/t", false), a.exists("/m", false),
		a.multi(a.create("/m/x", null, 0), a.delete("/m/x", -1)), a.exists("/m", false),
		a.multi(a.create("/m/x", null, 0), a.delete("/m/x", -1), a.create("/m/x", str("again"), 0)),
		a.exists("/m/x", false),
		a.multi(a.set("/m/x", str("1"), -1), a.set("/m/x", str("2"), -1), a.set("/m/x", str("3"), 2)),
		b.get("/m/x", false), c.multi(c.check("/m/x", 3)), c.multi(c.check("/m/x", -1)),
		a.multi(a.delete("/m/x", 3)), a.multi(a.create("/m/e", null, 1)), a.exists("/m/e", false),
		a.multi(a.delete("/m/e", -1)), a.ephemerals("/m/e"), a.ls2("/m", false),
		a.multi(a.create("/m/e1", null, 1), a.create("/m/e2", null, 1)), a.ephemerals("/m"),
		// The Kafka broker's registration.
		a.multi(a.create("/m/broker", null, 1), a.set("/m/broker", str("{}"), 0)), a.get("/m/broker", false),
	}
}

func multiErrors() []step {
	s := []step{
		a.create("/me", str("0"), znode.Persistent), a.create("/me/full", null, znode.Persistent),
		a.create("/me/full/1", null, znode.Persistent), a.exists("/me", true), a.ls("/me", true),
	}
	for _, bad := range []step{
		a.create("/me", null, 0), a.create("/none/x", null, 0), a.create("/me/", null, 0),
		a.create("me", null, 0), a.create("/me/a/./b", null, 0), a.delete("/me/none", -1),
		a.delete("/me/full", -1), a.delete("/me/full/1", 9), a.delete("/", -1), a.set("/me", null, 9),
		a.set("/none", null, -1), a.check("/me", 9), a.check("/none", -1), a.check("/none", 0),
		a.createACL("/me/x", null, 0, nil), a.createACL("/me/x", null, 0, acl(31, "what", "x")),
		a.createTTL("/me/x", 5, 0), a.createTTL("/me/x", 5, 1<<40), a.createTTL("/me/x", 0, 1000),
		a.createTTL("/me/x", 9, 1000), a.create("/me/x", null, 5), a.create2("/me/x", null, 6),
		a.create("/me/x", null, 4), a.createContainer("/me/x", 0), a.createContainer("/me/x", 1),
		a.create("/zookeeper/config/x", null, 0),
	} {
		// Alone, first, in the middle and last.
		s = append(s, a.multi(bad), a.multi(a.create("/me/y", null, 0), bad, a.set("/me", str("1"), -1)),
			a.multi(a.set("/me", str("1"), -1), a.create("/me/s-", null, 2), bad),
			a.multi(a.delete("/me/x", -1)), a.multi(a.delete("/me/y", -1)), a.exists("/me", false))
	}
	s = append(s, a.create("/me/s-", null, znode.PersistentSequential), b.ls2("/me", false))
	for _, bad := range []step{
		a.create("/me/z", null, 9), a.create("/me/z", null, -1), a.get("/me", false),
		a.ls("/me", false), a.exists("/me", false), a.setACL("/me", znode.OpenACL, -1), a.sync("/me"),
	} {
		s = append(s, a.multi(bad), a.multi(a.set("/me", null, -1), bad), a.exists("/me", false))
	}
	return append(s,
		a.do(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
			{Type: wire.OpMulti, Request: &wire.MultiRequest{}}}}),
		a.exists("/me", false))
}

func multiReads() []step {
	return []step{
		a.create("/mr", str("r"), znode.Persistent), a.create("/mr/1", str("1"), znode.Persistent),
		a.multiRead(), a.multiRead(a.get("/mr", false), a.ls("/mr", false), a.get("/mr/1", false)),
		a.multiRead(a.get("/none", false), a.get("/mr", false), a.ls("/none", false)),
		a.multiRead(a.get("/mr", true), a.ls("/mr", true)), a.set("/mr", str("s"), -1),
		a.create("/mr/2", null, znode.Persistent), a.multiRead(a.exists("/mr", false)),
		a.multiRead(a.set("/mr", null, -1)), a.multiRead(a.get("/mr", false), a.create("/mr/3", null, 0)),
		a.multiRead(a.ls2("/mr", false)), a.get("/mr", false),
	}
}
