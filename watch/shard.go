package watch

import (
	"iter"
	"maps"
	"sync"

	"github.com/zk-lite/zk-lite/znode"
)

// shardCount stripes the paths over locks, so that connections that set watches
// on different paths seldom contend. A power of two.
const shardCount = 64

// shard is one stripe of the paths. A path's whole set of watchers, of both
// tables, is in one shard.
type shard struct {
	mu sync.Mutex // protects the fields below

	paths     map[string]watchers
	peak      int   // most entries that paths has had since it was made
	dataPairs int64 // (watcher, path) pairs in the data table
	pairs     int64 // pairs in the data table plus pairs in the child table
	dataPaths int64 // paths with a watcher in the data table
}

// modes is the set of modes that one watcher holds on one path.
type modes uint8

const (
	hasData modes = 1 << iota
	hasChild
	hasPersistent
	hasRecursive

	oneShot    = hasData | hasChild
	dataTable  = hasData | hasPersistent | hasRecursive
	childTable = hasChild | hasPersistent
)

// modesOf returns 0 for an invalid mode.
func modesOf(m Mode) modes {
	if m < Data || m > Recursive {
		return 0
	}
	return 1 << (m - Data)
}

// selects returns the set of modes that t selects in removeWatches and checkWatches
// (DataTree.removeWatch and containsWatcher); 0 for an unknown type.
func selects(t znode.WatcherType) modes {
	switch t {
	case znode.WatcherChildren:
		return hasChild
	case znode.WatcherData:
		return hasData
	case znode.WatcherAny:
		return dataTable | childTable
	case znode.WatcherPersistent:
		return hasPersistent
	case znode.WatcherRecursive:
		return hasRecursive
	}
	return 0
}

// in returns 1 if the set has a mode of the table, else 0, to count members.
func (k modes) in(table modes) int64 {
	if k&table != 0 {
		return 1
	}
	return 0
}

func (k modes) list() (modes []Mode) {
	for m := Data; m <= Recursive; m++ {
		if k&modesOf(m) != 0 {
			modes = append(modes, m)
		}
	}
	return modes
}

// watchers is the set of watchers of one path. Most paths have a single one,
// which is kept in place; the map costs several hundred bytes and is made for
// the second. Invariant: group != nil if and only if one == nil.
type watchers struct {
	one   *Watcher
	group *group
	modes modes // of one
}

// group is the set of two or more watchers of a path. (It may shrink below two
// again; it is not converted back.)
type group struct {
	modes     map[*Watcher]modes
	data      int // members in the data table
	child     int // members in the child table
	recursive int // members with a recursive watch
}

func (g *group) count(k modes, by int) {
	g.data += by * int(k.in(dataTable))
	g.child += by * int(k.in(childTable))
	g.recursive += by * int(k.in(hasRecursive))
}

// has reports whether any member is in the table; hasRecursive selects the
// recursive watches.
func (g *group) has(table modes) bool {
	return table&hasData != 0 && g.data > 0 || table&hasChild != 0 && g.child > 0 ||
		table == hasRecursive && g.recursive > 0
}

// get returns w's set of modes, 0 when it has none.
func (ws watchers) get(w *Watcher) modes {
	if ws.group != nil {
		return ws.group.modes[w]
	}
	if ws.one == w {
		return ws.modes
	}
	return 0
}

// dataWatchers returns how many watchers the set has in the data table.
func (ws watchers) dataWatchers() int {
	if ws.group != nil {
		return ws.group.data
	}
	return int(ws.modes.in(dataTable))
}

// size returns how many watchers the set has.
func (ws watchers) size() int {
	switch {
	case ws.group != nil:
		return len(ws.group.modes)
	case ws.one != nil:
		return 1
	}
	return 0
}

// setLocked changes the set of modes of w on path from one value to another,
// and updates the counters. It does not touch w's own index.
func (s *shard) setLocked(path string, w *Watcher, from, to modes) {
	ws := s.paths[path]
	before := ws.dataWatchers()
	ws = ws.with(w, from, to)
	if ws.one == nil && ws.group == nil {
		delete(s.paths, path)
		if len(s.paths) == 0 && s.peak > keptRoom {
			s.paths, s.peak = nil, 0
		}
	} else {
		if s.paths == nil {
			s.paths = make(map[string]watchers)
		}
		s.paths[path] = ws
		s.peak = max(s.peak, len(s.paths))
	}
	s.countLocked(from, to, before, ws.dataWatchers())
	w.countData(to.in(dataTable) - from.in(dataTable))
	w.owner.countRecursive(path, to.in(hasRecursive)-from.in(hasRecursive))
}

// with returns the set after w's modes change from one value to another.
func (ws watchers) with(w *Watcher, from, to modes) watchers {
	if g := ws.group; g != nil {
		g.count(from, -1)
		g.count(to, +1)
		if to != 0 {
			g.modes[w] = to
		} else if delete(g.modes, w); len(g.modes) == 0 {
			return watchers{}
		}
		return ws
	}
	switch {
	case to == 0:
		return watchers{}
	case ws.one == nil || ws.one == w:
		return watchers{one: w, modes: to}
	}
	g := &group{modes: map[*Watcher]modes{ws.one: ws.modes, w: to}}
	g.count(ws.modes, +1)
	g.count(to, +1)
	return watchers{group: g}
}

// countLocked updates the counters for one change of a pair. before and after
// are the path's watchers in the data table.
func (s *shard) countLocked(from, to modes, before, after int) {
	data := to.in(dataTable) - from.in(dataTable)
	s.dataPairs += data
	s.pairs += data + to.in(childTable) - from.in(childTable)
	switch {
	case before == 0 && after > 0:
		s.dataPaths++
	case before > 0 && after == 0:
		s.dataPaths--
	}
}

// all iterates over the set.
func (ws watchers) all() iter.Seq2[*Watcher, modes] {
	if ws.group != nil {
		return maps.All(ws.group.modes)
	}
	return func(yield func(*Watcher, modes) bool) {
		if ws.one != nil {
			yield(ws.one, ws.modes)
		}
	}
}
