//go:build interop

package conformance_test

import (
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// quotas keeps to what is the same in 3.8 and 3.9: soft limits, which refuse
// nothing, and the figures that the server keeps.
func quotas() []step {
	const limits, stats = "/zookeeper/quota/qu/zookeeper_limits", "/zookeeper/quota/qu/zookeeper_stats"
	return []step{
		a.create("/qu", str("1234"), 0), a.create("/qu/1", str("12"), 0),
		a.create("/zookeeper/quota/qu", null, 0), a.create(limits, str("count=3,bytes=10"), 0),
		a.create(stats, str("count=0,bytes=0"), 0), a.get(stats, true), b.get(limits, false),
		a.create("/qu/2", str("1"), 0), a.get(stats, false), a.create("/qu/3", str("12345"), 0),
		a.set("/qu/3", str("1"), -1), a.get(stats, false), a.delete("/qu/3", -1), b.get(stats, false),
		a.set("/qu", null, -1), a.multi(a.create("/qu/4", str("12"), 0), a.delete("/qu/2", -1)),
		c.get(stats, false), a.create("/qu/4/e", str("123"), znode.Ephemeral), a.get(stats, false),
		a.delete("/qu/4/e", -1), a.set(limits, str("count=1,bytes=-1"), -1), a.create("/qu/5", null, 0),
		a.get(stats, false), a.delete(stats, -1), a.delete(limits, -1),
		a.delete("/zookeeper/quota/qu", -1), a.create("/qu/6", null, 0),
	}
}

// pipelines sends many requests at once: each sees what those before it did.
func pipelines() []step {
	return []step{
		a.burst(a.create("/pl", null, 0), a.create("/pl/1", null, 0), a.set("/pl/1", str("1"), 0),
			a.get("/pl/1", false), a.set("/pl/1", str("2"), 0), a.exists("/pl/1", false), a.ping(),
			a.delete("/pl/1", 1), a.get("/pl/1", true), a.ls2("/pl", false), a.sync("/pl")),
		b.burst(b.create("/pl/s-", null, 2), b.create("/pl/s-", null, 2), b.ls("/pl", false),
			b.create("/pl/s-", null, 2), b.delete("/pl/s-0000000002", -1), b.ls("/pl", true),
			b.create("/pl/s-", null, 2), b.ls("/pl", false)),
		c.burst(c.multi(c.create("/pl/m", null, 0), c.check("/none", -1)), c.exists("/pl/m", false),
			c.multi(c.create("/pl/m", null, 0)), c.exists("/pl/m", false),
			c.multi(c.create("/pl/m", null, 0)), c.whoAmI()),
		a.burst(a.getACL("/pl"), a.addWatch("/pl", persistent), a.create("/pl/w", null, 0),
			a.removeWatches("/pl", znode.WatcherAny), a.create("/pl/w2", null, 0)),
	}
}

func sessions() []step {
	return []step{
		x.connect(1), x.create("/ses", null, 0), x.create("/ses/e", null, znode.Ephemeral),
		x.resume(1), x.exists("/ses/e", false), x.resume(2), x.create("/ses/e2", null, znode.Ephemeral),
		x.ephemerals("/ses"), x.drop(), x.resume(3), x.ephemerals("/ses"), x.set("/ses/e", str("3"), 0),
		a.ls("/ses", true), a.exists("/ses/e", true),
		x.burst(x.create("/ses/last", null, 0), x.close()),
		a.ls2("/ses", false), x.connect(2), x.auth("digest", cluster.SuperCredentials),
		x.whoAmI(), x.resume(2), x.whoAmI(), x.close(),
	}
}

// nonsense is what no client sends. It leaves out a check outside of a multi, of
// which a leader of 3.8 dies (ZOOKEEPER-2623), a deleteContainer, whose body was
// another one before 3.9, and a SASL token of null, which ends in an exception.
// Those that end the connection are followed
// by a resume, so that the session ends in order.
func nonsense() []step {
	header := func(xid, op byte) []byte { return []byte{0, 0, 0, xid, 0, 0, 0, op} }
	frame := func(payload []byte) []byte { return append([]byte{0, 0, 0, byte(len(payload))}, payload...) }
	var s []step
	s = append(s, d.connect(1))
	for _, op := range []wire.OpCode{0, 10, 23, 99, 108, 500, -1, -100} {
		s = append(s, d.do(op, &wire.CheckRequest{Path: "/", Version: -1}), d.resume(1), d.exists("/", false))
	}
	for _, op := range []wire.OpCode{wire.OpGetData, wire.OpMulti, wire.OpSetWatches,
		wire.OpAuth, wire.OpSync, wire.OpAddWatch} {
		// A body that ends too early, or claims more than there is.
		s = append(s, d.do(op, nil), d.do(op, &wire.ExistsRequest{}), d.resume(1))
	}
	s = append(s, d.do(wire.OpReconfig, &wire.ReconfigRequest{CurConfigID: -1}),
		d.do(wire.OpReconfig, &wire.ReconfigRequest{CurConfigID: 5}),
		d.do(wire.OpExists, &wire.SetDataRequest{Path: "/", Data: str("more than asked for")}),
		d.raw(frame(append(header(99, 3), 0x7f, 0xff, 0xff, 0xff))...), d.resume(2),
		d.raw(0, 0, 0, 0), d.resume(2), d.raw(0xff, 0xff, 0xff, 0xff), d.resume(2),
		d.raw(frame([]byte{0, 0, 0})...), d.resume(2),
		d.do(wire.OpSASL, &wire.SASLRequest{Token: str("x")}), d.resume(2))
	return append(s, d.close())
}

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
		a.createACL("/me/x", null, 0, []znode.ACL{}), a.createACL("/me/x", null, 0, acl(31, "what", "x")),
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
