// Package watch decides which local watchers an edit of the tree notifies: each
// of them once, with what, and in which order.
//
// A watcher is one client connection (Manager.NewWatcher). It sets watches on
// paths, which need not exist; Trigger takes one edit of the tree and passes a
// Notification to the Sink of every watcher concerned. The semantics are those
// of ZooKeeper 3.9: two tables, data and child (DataTree), one-shot watches that
// are consumed when they fire, persistent and persistent recursive ones that are
// not (WatchManager), and several modes of one watcher on one path side by side
// (WatchStats, ZOOKEEPER-4466).
//
//	edit of /p/n   notifications, in this order
//	created        NodeCreated /p/n to data(/p/n); NodeChildrenChanged /p to child(/p)
//	data changed   NodeDataChanged /p/n to data(/p/n)
//	deleted        NodeDeleted /p/n to data(/p/n), then to child(/p/n) for those who
//	               have not got it yet; NodeChildrenChanged /p to child(/p)
//
// data(x) also contains the recursive watches on x and on every ancestor of x.
// The path of a notification is that of the changed znode, not of the watch.
//
// The package does not know whether a znode exists, does not compare zxids to
// catch up after a reconnect (setWatches), checks no permission and encodes
// nothing: callers and Sinks do. Watches are never replicated.
//
// # Memory
//
// A path is one entry, which a hash table finds and each watcher has in a set of
// its own; the entry has its watchers. So a watch takes at most 93 bytes beside
// the path's text, of which there is one, however watches are spread over
// connections and paths (BenchmarkMemory_PerWatch). The tables shrink again.
//
// # Concurrency
//
// The package starts no goroutine. Add, Remove, Contains, Drop and the reports
// may be called from many goroutines at once. Trigger must be called by one
// goroutine at a time, and not from within a Notify.
//
// Trigger calls Notify synchronously, in the caller's goroutine, holding no lock
// of this package: Notify may call Add, Remove or Drop. When Trigger returns, it
// has delivered all its notifications, so successive Triggers reach every Sink
// in their order. The watchers of one notification are in no particular order.
//
// Add and Trigger order themselves only path by path: an Add that returned
// before Trigger was called is seen by it, one that starts after Trigger
// returned is not, and of two that overlap either may come first. A caller that
// needs the watch armed at exactly the state of a reply (a read with a watch)
// must order them itself: package server calls Add while it reads under the
// shared side of its view lock, and Trigger under the exclusive side.
//
// When Drop overlaps a Trigger, that Trigger may still call the dropped
// watcher's Notify after Drop has returned; no Trigger that starts later does.
//
// Locks: a shard's, then a watcher's; never two shards' at once. A slow Sink
// delays Trigger's caller, therefore Notify must not block.
package watch
