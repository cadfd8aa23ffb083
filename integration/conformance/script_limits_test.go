//go:build interop

package conformance_test

import (
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// hardQuotas are limits that refuse (enforceQuota), of each kind and with both kinds, alone and inside a multi.
func hardQuotas() []step {
	const limits, stats = "/zookeeper/quota/hq/zookeeper_limits", "/zookeeper/quota/hq/zookeeper_stats"
	s := []step{a.create("/hq", str("1234"), 0), a.create("/hq/1", str("12"), 0),
		a.create("/zookeeper/quota/hq", null, 0), a.create(limits, str("count=-1,bytes=-1"), 0),
		a.create(stats, str("count=0,bytes=0"), 0), a.get(stats, false)}
	for _, limit := range []string{
		"count=-1,bytes=-1,byteHardLimit=-1;countHardLimit=-1", "count=-1,bytes=-1,byteHardLimit=-1;countHardLimit=3",
		"count=-1,bytes=-1,byteHardLimit=10;countHardLimit=-1", "count=-1,bytes=-1=,byteHardLimit=10=;countHardLimit=3=",
		"count=2,bytes=5,byteHardLimit=12;countHardLimit=4", "count=9,bytes=99,byteHardLimit=8;countHardLimit=2",
		"count=0,bytes=0", "count=-1,bytes=-1=;byteHardLimit=0;countHardLimit=0", "count=3", "",
	} {
		s = append(s, a.set(limits, str(limit), -1), a.get(limits, false),
			b.create("/hq/2", str("1"), 0), b.create2("/hq/3", str("12345"), 0), b.createContainer("/hq/4", znode.Container),
			b.createTTL("/hq/5", znode.PersistentTTL, 3_600_000), b.create("/hq/s-", str("xy"), znode.PersistentSequential),
			b.create("/hq/e", null, znode.Ephemeral),
			a.get(stats, false),
			b.set("/hq/1", str("123456789"), -1), b.set("/hq/1", str("1"), -1), b.set("/hq/1", str("12"), -1),
			b.set("/hq/none", str("123456789123456789"), -1), b.create("/hq/1", str("123456789123456789"), 0),
			b.set("/hq", str("12345"), -1), b.set("/hq", str("1234"), -1),
			c.multi(c.create("/hq/6", str("123"), 0), c.set("/hq/6", str("12345"), 0)), c.multi(c.delete("/hq/6", -1)),
			c.multi(c.create("/hq/7", null, 0), c.create("/hq/8", null, 0), c.delete("/hq/7", -1)),
			a.get(stats, false))
		for _, name := range strings.Fields("2 3 4 5 6 7 8 e") {
			s = append(s, a.delete("/hq/"+name, -1))
		}
		s = append(s, a.get(stats, false))
	}
	return append(s, a.ls2("/hq", false), a.ls2("/zookeeper/quota/hq", false),
		// A second quota below, and one without figures.
		a.create("/zookeeper/quota/hq/1", null, 0),
		a.create("/zookeeper/quota/hq/1/zookeeper_limits", str("count=1,bytes=-1,byteHardLimit=-1;countHardLimit=1"), 0),
		b.create("/hq/1/x", null, 0), a.delete(limits, -1), b.create("/hq/y", null, 0), a.delete(stats, -1),
		b.create("/hq/z", null, 0), a.delete("/zookeeper/quota/hq/1/zookeeper_limits", -1),
		a.delete("/zookeeper/quota/hq/1", -1), a.delete("/zookeeper/quota/hq", -1), b.create("/hq/1/x", null, 0))
}

// multiQuotas fills a quota to its limit, and replaces a znode in one multi.
func multiQuotas() []step {
	return []step{a.create("/hm", null, 0), a.create("/hm/1", null, 0), a.create("/zookeeper/quota/hm", null, 0),
		a.create("/zookeeper/quota/hm/zookeeper_limits", str("count=-1,bytes=-1,byteHardLimit=-1;countHardLimit=2"), 0),
		a.create("/zookeeper/quota/hm/zookeeper_stats", str("count=0,bytes=0"), 0),
		b.multi(b.delete("/hm/1", -1), b.create("/hm/2", null, 0)), a.multi(a.delete("/hm/2", -1)),
		a.multi(a.delete("/hm/1", -1)), b.multi(b.create("/hm/2", null, 0), b.create("/hm/3", null, 0)),
	}
}

// closings end a session between requests of one pipeline; what comes behind has no effect.
func closings() []step {
	return []step{
		a.create("/cl", null, 0), x.connect(1), x.create("/cl/e", null, znode.Ephemeral),
		x.burst(x.create("/cl/1", null, 0), x.multi(x.create("/cl/2", null, 0), x.create("/cl/e2", null, 1)), x.close()),
		a.ls2("/cl", false), a.sync("/"), a.ls("/cl", true), d.connect(2), d.exists("/cl/1", true),
		d.burst(d.delete("/cl/1", -1), d.create("/cl/e3", null, znode.Ephemeral), d.sync("/"), d.whoAmI(), d.close()),
		a.ls2("/cl", false),
	}
}

// everyType is a multi with all requests that it may have, and with one that fails at each place.
func everyType() []step {
	const hour = 3_600_000
	all := func() []step {
		return []step{
			a.create("/et/p", str("p"), znode.Persistent), a.create("/et/e", null, znode.Ephemeral),
			a.create("/et/s-", empty, znode.PersistentSequential), a.create("/et/es-", null, znode.EphemeralSequential),
			a.create2("/et/p2", str("p"), znode.Persistent), a.create2("/et/e2", null, znode.Ephemeral),
			a.create2("/et/s-", empty, znode.PersistentSequential), a.create2("/et/es-", null, znode.EphemeralSequential),
			a.createContainer("/et/c", znode.Container), a.create("/et/c/1", null, 0), a.delete("/et/c/1", -1),
			a.createTTL("/et/t", znode.PersistentTTL, hour), a.createTTL("/et/t-", znode.PersistentSequentialTTL, hour),
			a.create2("/et/c2", null, znode.Container), a.create("/et/c3", null, znode.Container),
			a.set("/et/p", str("q"), 0), a.set("/et/t", empty, -1), a.check("/et/p", 1), a.check("/et", -1),
			a.delete("/et/p2", 0), a.delete("/et/e", -1), a.set("/et", str("done"), -1),
		}
	}
	s := []step{a.create("/et", null, 0), a.ls("/et", true), c.addWatch("/et", recursive), b.addWatch("/et", persistent)}
	for i := range len(all()) + 1 {
		ops := all()
		s = append(s, a.multi(append(ops[:i:i], append([]step{a.delete("/et/missing", -1)}, ops[i:]...)...)...),
			b.ls2("/et", false))
	}
	s = append(s, a.multi(all()...), b.ls2("/et", false), b.get("/et/t", false), b.get("/et/c", false), a.ephemerals("/et"),
		a.multi(all()...), b.descendants("/et"))
	for _, path := range []string{"/et/p", "/et/c", "/et/c2", "/et/c3", "/et/t", "/et/e2"} {
		s = append(s, b.get(path, false), a.multi(a.check(path, 0), a.delete(path, -1)))
	}
	return append(s, a.multi(all()...), b.ls2("/et", false), c.removeWatches("/et", znode.WatcherAny),
		b.removeWatches("/et", znode.WatcherAny))
}
