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
// Add, Remove, Contains, Drop and the reports may be called from many goroutines
// at once. Trigger must be called by one goroutine at a time, and not from within
// a Notify.
//
// Trigger calls Notify in the caller's goroutine, holding a lock that only
// CatchUp takes: Notify may call Add, Remove or Drop. With the option Fanout,
// Trigger only takes the watchers of a path that has many, in a time that hardly
// depends on their number; one-shot watches are gone at once, in all reports, too.
// A goroutine, which ends when it has caught up, calls their Notify. If it is far
// behind, Trigger waits for it. Watcher.CatchUp calls what one watcher is owed;
// after that, the watcher has had all that Trigger was called with. In any case
// a Sink gets each notification once, and in the order of Triggers; those for
// different watchers are in no particular order.
//
// Add and Trigger order themselves only path by path: an Add that returned
// before Trigger was called is seen by it, one that starts after Trigger
// returned is not, and of two that overlap either may come first. A caller that
// needs the watch armed at exactly the state of a reply (a read with a watch)
// must order them itself: package server calls Add while it reads under the
// shared side of its view lock, and Trigger under the exclusive side.
//
// When Drop overlaps a Trigger or its fan-out, the dropped watcher's Notify may
// still be called after Drop has returned; no Trigger that starts later does.
//
// Locks: Watcher.telling, then a shard's, then Watcher.mu; never two shards' at
// once. A slow Sink delays Trigger's caller, therefore Notify must not block.
package watch
