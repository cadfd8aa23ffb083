package watch

import (
	"iter"
	"slices"
)

// entry is one watched path, which the table and all its watchers share, with the watchers. Most paths have a single
// watcher, which is kept in place; a group is made for the second. Its shard protects all but path and hash, which
// never change. Invariant: one == nil or group == nil, and the entry is in its table unless both are.
type entry struct {
	path  string
	next  *entry // in the same bucket of the table
	one   *Watcher
	group *group
	hash  uint32 // of the path
	modes modes  // of one
}

// group is the set of two or more watchers of a path. (It may shrink below two
// again; it is not converted back.)
type group struct {
	members                set[*Watcher, modes]
	data, child, recursive int32 // members in the data table, in the child table, and with a recursive watch
	lasting                int32 // members with a watch that is not one-shot
	lent                   bool  // a fanout has the members, too: they are copied before they change
}

func (g *group) count(k modes, by int32) {
	g.lasting += by * int32(k.in(^oneShot))
	g.data += by * int32(k.in(dataTable))
	g.child += by * int32(k.in(childTable))
	g.recursive += by * int32(k.in(hasRecursive))
}

// only reports whether all members have one-shot watches of these modes, and no others.
func (g *group) only(k modes) bool {
	return g.lasting == 0 && (k&hasData != 0 || g.data == 0) && (k&hasChild != 0 || g.child == 0)
}

// in returns how many members are in a table, or in both; hasRecursive selects the recursive watches.
func (g *group) in(table modes) int {
	switch table {
	case hasRecursive:
		return int(g.recursive)
	case dataTable:
		return int(g.data)
	case childTable:
		return int(g.child)
	}
	return g.members.n
}

// has reports whether any watcher of the path is in the table; hasRecursive selects the recursive watches.
func (e *entry) has(table modes) bool {
	if e.group != nil {
		return e.group.in(table) > 0
	}
	return e.modes&table != 0
}

// get returns w's set of modes, 0 when it has none. A nil entry has no watchers.
func (e *entry) get(w *Watcher) modes {
	switch {
	case e == nil:
		return 0
	case e.group != nil:
		return e.group.members.get(w)
	case e.one == w:
		return e.modes
	}
	return 0
}

// set changes w's set of modes from one value to another.
func (e *entry) set(w *Watcher, from, to modes) {
	if e.group == nil && e.one != nil && e.one != w {
		e.group = &group{}
		e.group.members.put(e.one, e.modes)
		e.group.count(e.modes, +1)
		e.one, e.modes = nil, 0
	}
	g := e.group
	if g != nil && g.lent {
		g.members.slots, g.lent = slices.Clone(g.members.slots), false
	}
	switch {
	case g == nil && to == 0:
		e.one, e.modes = nil, 0
	case g == nil:
		e.one, e.modes = w, to
	case to == 0:
		g.count(from, -1)
		if g.members.remove(w); g.members.n == 0 {
			e.group = nil
		}
	default:
		g.count(from, -1)
		g.count(to, +1)
		g.members.put(w, to)
	}
}

// dataWatchers returns how many watchers the path has in the data table.
func (e *entry) dataWatchers() int {
	if e.group != nil {
		return int(e.group.data)
	}
	return int(e.modes.in(dataTable))
}

// size returns how many watchers the path has.
func (e *entry) size() int {
	switch {
	case e.group != nil:
		return e.group.members.n
	case e.one != nil:
		return 1
	}
	return 0
}

// all iterates over the watchers, which must not change meanwhile. A nil entry has none.
func (e *entry) all() iter.Seq2[*Watcher, modes] {
	return func(yield func(*Watcher, modes) bool) {
		switch {
		case e == nil:
		case e.group != nil:
			e.group.members.all()(yield)
		case e.one != nil:
			yield(e.one, e.modes)
		}
	}
}

// table is a hash table of entries, chained through them: one look on average finds that a path is not watched.
// It has one to two buckets, of 8 bytes, for each entry.
type table struct {
	buckets []*entry // a power of two, or none
	n       int      // entries
}

// bucket is where the entries of a hash begin. The low bits have chosen the shard.
func (t *table) bucket(hash uint32) **entry {
	return &t.buckets[int(hash/shardCount)&(len(t.buckets)-1)]
}

// find returns nil if the path is not watched.
func (t *table) find(hash uint32, path string) *entry {
	if t.n == 0 {
		return nil
	}
	e := *t.bucket(hash)
	for e != nil && (e.hash != hash || e.path != path) {
		e = e.next
	}
	return e
}

// insert adds an entry that is not there.
func (t *table) insert(e *entry) {
	if t.n == len(t.buckets) {
		t.resize(max(2*t.n, 1))
	}
	at := t.bucket(e.hash)
	e.next, *at = *at, e
	t.n++
}

// remove takes out an entry that is there.
func (t *table) remove(e *entry) {
	at := t.bucket(e.hash)
	for *at != e {
		at = &(*at).next
	}
	*at, e.next = e.next, nil
	if t.n--; len(t.buckets) > keptRoom && t.n < len(t.buckets)/8 {
		t.resize(len(t.buckets) / 2)
	}
}

func (t *table) resize(buckets int) {
	old := t.buckets
	t.buckets = make([]*entry, buckets)
	for _, e := range old {
		for e != nil {
			at, next := t.bucket(e.hash), e.next
			e.next, *at = *at, e
			e = next
		}
	}
}

// all iterates over the entries, which must not change meanwhile.
func (t *table) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range t.buckets {
			for ; e != nil; e = e.next {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// hashed is a pointer to what knows its own hash.
type hashed interface {
	comparable
	hashed() uint32
}

func (e *entry) hashed() uint32   { return e.hash }
func (w *Watcher) hashed() uint32 { return w.hash }

// set is a hash table of pointers, each with a value. It takes half of what a Go map does, a tenth when there is one
// key, and shrinks again. A search goes from slot to slot until one is free. Up to 8 keys may fill all slots, more
// at most three quarters of them.
type set[K hashed, V any] struct {
	slots []slot[K, V] // a power of two, or none
	n     int          // keys
}

// slot has the value first, because Go makes room behind an empty one at the end.
type slot[K hashed, V any] struct {
	value V
	key   K
}

// find returns where the key is, or else where it belongs if there is room.
func (s *set[K, V]) find(key K) (at int, found bool) {
	var none K
	at = int(key.hashed())
	for range s.slots {
		at &= len(s.slots) - 1
		switch s.slots[at].key {
		case key:
			return at, true
		case none:
			return at, false
		}
		at++
	}
	return at, false
}

// get returns the value of a key, or the zero value.
func (s *set[K, V]) get(key K) (value V) {
	if at, found := s.find(key); found {
		value = s.slots[at].value
	}
	return value
}

// put adds a key or changes its value.
func (s *set[K, V]) put(key K, value V) {
	at, found := s.find(key)
	if !found {
		if size := len(s.slots); s.n == size || size > 8 && s.n >= size/4*3 {
			s.resize(max(2*size, 1))
			at, _ = s.find(key)
		}
		s.n++
	}
	s.slots[at] = slot[K, V]{value, key}
}

// remove reports whether the key was there. Those behind it that would no longer be found move up.
func (s *set[K, V]) remove(key K) bool {
	free, found := s.find(key)
	if !found {
		return false
	}
	var none slot[K, V]
	mask := len(s.slots) - 1
	s.slots[free] = none // ends the loop in a set that was full
	for at := (free + 1) & mask; s.slots[at].key != none.key; at = (at + 1) & mask {
		home := int(s.slots[at].key.hashed())
		if (at-home)&mask >= (at-free)&mask {
			s.slots[free], s.slots[at] = s.slots[at], none
			free = at
		}
	}
	if s.n--; len(s.slots) > keptRoom && s.n < len(s.slots)/8 {
		s.resize(len(s.slots) / 2)
	}
	return true
}

func (s *set[K, V]) resize(size int) {
	var none K
	old := s.slots
	s.slots = make([]slot[K, V], size)
	for _, x := range old {
		if x.key != none {
			at, _ := s.find(x.key)
			s.slots[at] = x
		}
	}
}

// all iterates over the set, which must not change meanwhile.
func (s *set[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		var none K
		for _, x := range s.slots {
			if x.key != none && !yield(x.key, x.value) {
				return
			}
		}
	}
}
