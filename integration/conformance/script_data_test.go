//go:build interop

package conformance_test

import (
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// The sessions of the script, one on each server.
const (
	a session = "a"
	b session = "b"
	c session = "c"
	d session = "d"
	x session = "x"
)

// script is the whole script, by topics.
func script() []step {
	return slices.Concat(olderScript(), removingKinds(), severalKinds(), addresses(), otherSchemes())
}

// olderScript is the part of the script that ZooKeeper 3.8 can run, too.
func olderScript() []step {
	return slices.Concat(
		[]step{a.connect(1), b.connect(2), c.connect(3)},
		freshTree(), creates(), sequences(), ephemerals(), extendedTypes(),
		badPaths(), goodPaths(), deletes(), data(), children(), versions(),
		multis(), multiReads(), multiErrors(), everyType(),
		acls(), digests(), auths(), aclChecks(),
		watches(), existWatches(), childWatches(), persistentWatches(), removing(), rearming(),
		watchACLs(), quotas(), hardQuotas(), multiQuotas(), queries(), pipelines(), sessions(), closings(), nonsense(),
	)
}

func freshTree() []step {
	return []step{
		a.get("/", false), a.ls2("/", false), a.exists("/zookeeper", false),
		a.ls2("/zookeeper", false), b.get("/zookeeper/quota", false), b.getACL("/"),
		b.getACL("/zookeeper/config"), c.descendants("/"), c.ls("/zookeeper/config", false),
		a.ls("", false), a.exists("", false), a.sync("/"), a.sync("/nowhere"), a.sync("no slash"),
		a.ping(), b.whoAmI(), a.ephemerals("/"),
	}
}

func creates() []step {
	return []step{
		a.create("/c", str("x"), znode.Persistent), a.get("/c", false), b.get("/c", false),
		a.create("/c", str("x"), znode.Persistent), a.create("/", str("x"), znode.Persistent),
		a.create("", str("x"), znode.Persistent),
		a.create2("/c/2", str("yy"), znode.Persistent), c.exists("/c/2", false), b.exists("/c", false),
		a.create("/c/none/x", null, znode.Persistent), a.create("/none", null, znode.Persistent),
		a.create("/c/null", null, znode.Persistent), a.get("/c/null", false),
		a.create("/c/empty", empty, znode.Persistent), a.get("/c/empty", false),
		a.create("/c/mode", null, 7), a.create("/c/mode", null, -1), a.create("/c/mode", null, 99),
		a.create("/c/container", null, znode.Container), a.exists("/c/container", false),
		a.create2("/c/container2", null, znode.Container),
		a.create("/c/ttl", null, znode.PersistentTTL), a.create2("/c/ttl", null, 6),
		a.exists("/c", false), a.delete("/none", -1),
	}
}

func sequences() []step {
	s := []step{a.create("/s", null, znode.Persistent)}
	for range 3 {
		s = append(s, a.create("/s/n-", str("1"), znode.PersistentSequential),
			b.create("/s/", str("2"), znode.PersistentSequential),
			c.create2("/s/e-", str("3"), znode.EphemeralSequential))
	}
	return append(s, a.create("/s/plain", null, znode.Persistent), a.delete("/s/plain", -1),
		a.create("/s/n-", null, znode.PersistentSequential), a.ls2("/s", false),
		a.create("/s/.", null, znode.PersistentSequential),
		a.create("/s/..", null, znode.PersistentSequential),
		a.create("/s//", null, znode.PersistentSequential),
		a.create("/s/n-0000000003", null, znode.Persistent), a.ls2("/s", false),
		a.create("/none/n-", null, znode.PersistentSequential),
		a.create2("/s-", null, znode.PersistentSequential))
}

func ephemerals() []step {
	return []step{
		a.create("/e", null, znode.Persistent), x.connect(2),
		x.create("/e/1", str("x"), znode.Ephemeral), x.create2("/e/2", null, znode.EphemeralSequential),
		a.get("/e/1", false), x.create("/e/1/child", null, znode.Persistent),
		x.create("/e/1/child-", null, znode.PersistentSequential),
		a.create("/e/1/child", null, znode.Ephemeral), x.ephemerals("/"), x.ephemerals("/e/1"),
		x.ephemerals("/nothing"), x.ephemerals(""), a.ephemerals("/e"), a.exists("/e/1", true),
		b.exists("/e/1", true), c.ls("/e", true), x.exists("/e/1", true), x.close(),
		a.ls2("/e", false), a.exists("/e/1", false),
		x.connectFor(3, 2), x.create("/e/3", null, znode.Ephemeral), b.exists("/e/3", true),
		b.ls("/e", true), x.expire("/e/3"), b.ls2("/e", false),
		a.create("/e/4", null, znode.Ephemeral), a.delete("/e/4", -1),
		a.create("/e/4", null, znode.Persistent), a.exists("/e/4", false), a.ephemerals("/"),
	}
}

func extendedTypes() []step {
	return []step{
		a.create("/x", null, znode.Persistent), a.createContainer("/x/c", znode.Container),
		a.createContainer("/x/c0", 0), a.createContainer("/x/c1", 1), a.createContainer("/x/c9", 9),
		a.exists("/x/c1", false), a.ephemerals("/x"), a.create("/x/c/child", null, znode.Persistent),
		a.delete("/x/c/child", -1), a.exists("/x/c", false), a.createContainer("/x/c", znode.Container),
		a.createTTL("/x/t", znode.PersistentTTL, 3_600_000), a.get("/x/t", false),
		a.createTTL("/x/t-", znode.PersistentSequentialTTL, 3_600_000),
		a.createTTL("/x/t0", znode.PersistentTTL, 0), a.createTTL("/x/t0", znode.PersistentTTL, -1),
		a.createTTL("/x/t0", znode.PersistentTTL, 1<<40), a.createTTL("/x/t0", znode.PersistentTTL, 1<<40-1),
		a.createTTL("/x/t1", znode.Persistent, 1000), a.createTTL("/x/t2", znode.Ephemeral, 1000),
		a.createTTL("/x/t3", znode.Container, 1000), a.createTTL("/x/t4", 9, 1000),
		a.create("/x/t/child", null, znode.Persistent), a.delete("/x/t", -1), a.ls2("/x", false),
		a.create("/x/t/child/e", null, znode.Ephemeral), a.exists("/x/t", false),
	}
}

func badPaths() []step {
	s := []step{a.create("/p", null, znode.Persistent)}
	for _, path := range []string{"p/x", "p", "/p/", "/p//x", "//p", "/p/./x", "/p/../x", "/p/.",
		"/p/..", "/p/a\x00b", "/p/\x01", "/p/\x1f", "/p/\x7f", "/p/\u009f", "/p/\ufff0", "/p/\ud7ff\ue000",
		"/p/\U0001F600", "/p/\ufffd", " /p", "/p/x/", "/", ""} {
		s = append(s, a.create(path, null, znode.Persistent), a.set(path, null, 99),
			a.delete(path, 99), a.exists(path, false), a.get(path, false), a.ls(path, false),
			a.setACL(path, znode.OpenACL, 99), a.multi(a.check(path, 99)))
	}
	return append(s, a.create("/p/x/", null, znode.PersistentSequential), a.ls2("/p", false),
		a.getACL("/p/"), a.getACL("p"), a.descendants("/p/"), a.descendants("p"), a.ls2("/p/", false))
}

func goodPaths() []step {
	s := []step{a.create("/g", null, znode.Persistent)}
	for _, name := range []string{".foo", "..f..", "f.", "...", "a b", " ", "ä", "日本", "\u00a0",
		"zookeeper", "a:b", "a\\b", "%00", "\u0080x"} {
		s = append(s, a.create("/g/"+name, str(name), znode.Persistent), b.get("/g/"+name, false))
	}
	return append(s, a.ls2("/g", false), a.descendants("/g"))
}

func deletes() []step {
	return []step{
		a.create("/d", null, znode.Persistent), a.create("/d/1", null, znode.Persistent),
		a.delete("/d", -1), a.delete("/d", 7), a.delete("/d/1", 1), a.delete("/d/1", 0),
		a.delete("/d/1", 0), a.exists("/d", false), a.delete("/d/none", 5), a.delete("/", -1),
		a.delete("/zookeeper", -1), a.delete("/zookeeper/quota", -1), a.delete("/zookeeper/config", -1),
		a.delete("/none/x", -1), a.delete("d", -1), a.delete("", -1), a.delete("/d", -1),
		a.delete("/d", -1),
	}
}

func data() []step {
	return []step{
		a.create("/data", str("0"), znode.Persistent), a.set("/data", str("1"), 0),
		a.set("/data", str("1"), 0), b.set("/data", str("1"), 1), c.set("/data", null, -1),
		a.get("/data", false), a.set("/data", empty, -1), a.get("/data", false),
		a.set("/data", str("x"), 100), a.set("/data", str("x"), -2), a.set("/none", str("x"), -1),
		a.set("/none", str("x"), 3), a.create("/data/child", null, znode.Persistent),
		a.set("/data/child", str("y"), -1), a.exists("/data", false), a.get("/none", false),
		a.set("/", str("root"), -1), a.get("/", false), a.set("/", empty, -1),
		a.set("/zookeeper", str("x"), -1), a.set("/zookeeper/config", str("x"), -1),
		a.get("/data", false),
	}
}

func children() []step {
	return []step{
		a.create("/k", null, znode.Persistent), a.ls("/k", false), a.ls2("/k", false),
		a.create("/k/1", null, znode.Persistent), a.create("/k/2", null, znode.Persistent),
		a.create("/k/1/1", null, znode.Persistent), a.ls2("/k", false), a.delete("/k/2", -1),
		a.ls2("/k", false), a.create("/k/2", null, znode.Persistent), a.exists("/k", false),
		a.ls("/none", false), a.ls2("/none", false), a.descendants("/k"), a.descendants("/none"),
		a.create("/k1", null, znode.Persistent), a.descendants("/k"),
	}
}

func versions() []step {
	return []step{
		a.create("/v", null, znode.Persistent), a.setACL("/v", znode.ReadACL, 1),
		a.setACL("/v", znode.OpenACL, 0), a.setACL("/v", znode.OpenACL, 0),
		a.setACL("/v", znode.OpenACL, -1), a.exists("/v", false), a.set("/v", null, 0),
		a.getACL("/v"), a.setACL("/none", znode.OpenACL, -1), a.getACL("/none"),
		a.setACL("/v", nil, -1), a.setACL("/v", []znode.ACL{}, -1), a.delete("/v", 0),
		a.delete("/v", 1),
	}
}

func queries() []step {
	return []step{
		a.create("/q", null, znode.Persistent), a.create("/q/e", null, znode.Ephemeral),
		a.create("/qe", null, znode.Ephemeral), a.ephemerals("/q"), a.ephemerals("/q/"),
		a.ephemerals("/"), a.ephemerals("  "), a.ephemerals("q"), a.descendants("/q"),
		a.whoAmI(), a.delete("/qe", -1), a.delete("/q/e", -1),
	}
}
