//go:build interop

package conformance_test

import "github.com/zk-lite/zk-lite/znode"

// allTypes are the types of watches that can be checked and removed, and two that there are not.
func allTypes() []znode.WatcherType {
	return []znode.WatcherType{znode.WatcherChildren, znode.WatcherData, znode.WatcherPersistent, znode.WatcherRecursive,
		znode.WatcherAny, 0, 6}
}

// removingKinds removes each kind of watch as every type, and kinds that one session has on one path (ZOOKEEPER-4466,
// since 3.9).
func removingKinds() []step {
	s := []step{b.create("/rk", null, 0)}
	for _, arm := range [][]step{
		nil,
		{a.get("/rk", true)},
		{a.ls("/rk", true)},
		{a.addWatch("/rk", persistent)},
		{a.addWatch("/rk", recursive)},
		{a.addWatch("/rk", persistent), a.addWatch("/rk", recursive)},
		{a.get("/rk", true), a.ls("/rk", true), a.addWatch("/rk", persistent), a.addWatch("/rk", recursive)},
	} {
		for _, kind := range allTypes() {
			s = append(s, arm...)
			s = append(s, a.removeWatches("/rk", kind))
			for _, left := range allTypes() {
				s = append(s, a.checkWatches("/rk", left))
			}
			s = append(s, b.set("/rk", null, -1), b.multi(b.create("/rk/1", null, 0), b.delete("/rk/1", -1)),
				a.removeWatches("/rk", znode.WatcherAny))
		}
	}
	return s
}

// severalKinds has all kinds of watches on one path, through its life and through a reconnect.
func severalKinds() []step {
	arm := []step{d.exists("/sk", true), d.addWatch("/sk", persistent), d.addWatch("/sk", recursive),
		d.addWatch("/sk/1", recursive)}
	change := []step{b.create("/sk", null, 0), d.get("/sk", true), d.ls("/sk", true), b.set("/sk", str("1"), -1),
		d.get("/sk", true), b.create("/sk/1", null, 0), b.create("/sk/1/2", null, 0), b.set("/sk/1/2", null, -1),
		b.setACL("/sk", znode.OpenACL, -1), b.multi(b.delete("/sk/1/2", -1), b.delete("/sk/1", -1)),
		d.ls("/sk", true), b.delete("/sk", -1)}
	s := append([]step{d.connect(2)}, arm...)
	s = append(s, change...)
	s = append(s, d.addWatch("/sk", persistent), d.addWatch("/sk", persistent)) // once more
	s = append(s, change...)
	all := []string{"/sk", "/sk/1", "/sk/none"}
	s = append(s, b.create("/sk", null, 0), b.create("/sk/1", null, 0), d.drop(), b.set("/sk", str("2"), -1),
		d.resume(1), d.setWatches2(all, all, all, all, all), b.set("/sk", str("3"), -1), b.set("/sk/1", null, -1),
		b.create("/sk/none", null, 0), b.delete("/sk/none", -1), b.delete("/sk/1", -1))
	for _, kind := range allTypes() {
		s = append(s, d.checkWatches("/sk", kind), d.removeWatches("/sk", kind), b.set("/sk", null, -1))
	}
	// Paths that there are not, and wrong ones.
	for _, path := range []string{"/none/at/all", "", "/", "sk", "/sk/", "//"} {
		s = append(s, d.addWatch(path, persistent), d.addWatch(path, recursive), d.checkWatches(path, znode.WatcherPersistent),
			d.checkWatches(path, znode.WatcherRecursive), d.removeWatches(path, znode.WatcherPersistent),
			d.removeWatches(path, znode.WatcherAny))
	}
	return append(s, b.delete("/sk", -1), d.close())
}
