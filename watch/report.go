package watch

import "slices"

// Summary is the content of wchs and mntr.
type Summary struct {
	// The data table only, as ZooKeeper's wchs and AdminServer report it
	// (DataTree.dumpWatchesSummary): connections with a watch in it, paths
	// watched, and (connection, path) pairs.
	Connections, Paths, Watches int64
	// Total is the pairs of the data table plus those of the child table:
	// mntr's watch_count (DataTree.getWatchCount).
	Total int64
}

// Summary counts the watches. It reads only the counters; during other calls
// its figures may belong to slightly different moments.
func (m *Manager) Summary() Summary {
	sum := Summary{Connections: m.conns.Load()}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		sum.Paths += s.dataPaths
		sum.Watches += s.dataPairs
		sum.Total += s.pairs
		s.mu.Unlock()
	}
	return sum
}

// PathReport is one path of the data table with its watchers.
type PathReport struct {
	Path     string
	Watchers []*Watcher
}

// WatcherReport is one watcher with the paths it watches in the data table.
type WatcherReport struct {
	Watcher *Watcher
	Paths   []string
}

// ByPath lists the data table by path, for wchp. It copies at most limit
// (connection, path) pairs, in no particular order, and reports whether there
// were more. Each shard is locked only while it is copied, so writers wait for
// a fraction of the whole, and a watch that is set or removed meanwhile may or
// may not be in the list.
func (m *Manager) ByPath(limit int) (rows []PathReport, more bool) {
	more = m.eachData(limit, func(path string, w *Watcher) {
		if n := len(rows); n > 0 && rows[n-1].Path == path {
			rows[n-1].Watchers = append(rows[n-1].Watchers, w)
			return
		}
		rows = append(rows, PathReport{Path: path, Watchers: []*Watcher{w}})
	})
	return rows, more
}

// ByWatcher is ByPath by connection, for wchc.
func (m *Manager) ByWatcher(limit int) (rows []WatcherReport, more bool) {
	row := make(map[*Watcher]int)
	more = m.eachData(limit, func(path string, w *Watcher) {
		i, ok := row[w]
		if !ok {
			i = len(rows)
			row[w] = i
			rows = append(rows, WatcherReport{Watcher: w})
		}
		rows[i].Paths = append(rows[i].Paths, path)
	})
	return rows, more
}

// eachData calls f for at most limit pairs of the data table, those of one
// path in a row, and reports whether there were more.
func (m *Manager) eachData(limit int, f func(string, *Watcher)) (more bool) {
	for i := range m.shards {
		if limit, more = m.shards[i].eachData(limit, f); more {
			return true
		}
	}
	return false
}

func (s *shard) eachData(limit int, f func(string, *Watcher)) (left int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.paths.all() {
		if e.dataWatchers() == 0 {
			continue
		}
		for w, k := range e.all() {
			if k&dataTable == 0 {
				continue
			}
			if limit <= 0 {
				return 0, true
			}
			limit--
			f(e.path, w)
		}
	}
	return limit, false
}

// Held is the watches of one watcher on one path.
type Held struct {
	Watcher *Watcher
	Path    string
	Modes   []Mode
}

// On lists the watches on a path, of at most limit watchers and in no particular order, and reports whether there
// were more.
func (m *Manager) On(path string, limit int) (list []Held, more bool) {
	s, hash := m.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	for w, k := range s.paths.find(hash, path).all() {
		if len(list) == limit {
			return list, true
		}
		list = append(list, Held{w, path, k.list()})
	}
	return list, false
}

// Of lists the watches of a watcher, at most limit paths in no particular order, and reports whether there were more.
// A watch that is set or removed meanwhile may or may not be in the list.
func (m *Manager) Of(w *Watcher, limit int) (list []Held, more bool) {
	var paths []*entry
	w.mu.Lock()
	for e := range w.paths.all() {
		if more = len(paths) == limit; more {
			break
		}
		paths = append(paths, e)
	}
	w.mu.Unlock()
	for _, e := range paths {
		s := &m.shards[e.hash%shardCount]
		s.mu.Lock()
		k := e.get(w)
		s.mu.Unlock()
		if k != 0 {
			list = append(list, Held{w, e.path, k.list()})
		}
	}
	return list, more
}

// MostWatched lists the paths with the most watchers of any mode, and their number; at most limit (above 0)
// paths, the most watched first. Each shard is locked while its paths are counted.
func (m *Manager) MostWatched(limit int) []PathCount {
	var first []PathCount
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for e := range s.paths.all() {
			n := PathCount{e.path, e.size()}
			if len(first) == limit && !n.before(first[limit-1]) {
				continue
			}
			at, _ := slices.BinarySearchFunc(first, n, func(a, b PathCount) int {
				if a.before(b) {
					return -1
				}
				return 1
			})
			first = slices.Insert(first, at, n)
			first = first[:min(len(first), limit)]
		}
		s.mu.Unlock()
	}
	return first
}

// PathCount is how many watchers a path has.
type PathCount struct {
	Path     string
	Watchers int
}

func (c PathCount) before(o PathCount) bool {
	return c.Watchers > o.Watchers || c.Watchers == o.Watchers && c.Path < o.Path
}

// Parts is the number of parts of Counts.
const Parts = shardCount

// Counts appends the paths of a part with their numbers of watchers, of any mode and in no particular order. The part
// is locked while it is copied, for a few milliseconds if it has 100,000 paths.
func (m *Manager) Counts(part int, into []PathCount) []PathCount {
	s := &m.shards[part]
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.paths.all() {
		into = append(into, PathCount{e.path, e.size()})
	}
	return into
}
