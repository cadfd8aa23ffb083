package znode

import "hash/maphash"

// index finds znodes by path: a hash table in shards, each an open-addressed
// table with linear probing. It exists because Go's map costs 24 bytes a slot
// for a path that the node holds anyway; here a slot is a pointer and a tag
// byte. Shards grow on their own, so no insert ever waits for the whole table,
// and a snapshot shares the shards' slots until the writer next touches them.
type index struct {
	seed   maphash.Seed
	shards [indexShards]shard
	count  int
}

// indexShards bounds the copy that one insert may cause: at ten million znodes
// a shard has 10,000 entries, about 150 KB.
const indexShards = 1024

type shard struct {
	table
	used   int
	shared bool // a snapshot may be reading the slots: copy them before writing
}

// table is the hash table of a shard. A snapshot takes the slots only. tags[i] is 0 for a free
// slot, else 0x80 and seven bits of the hash of slots[i]'s path. The low half of the hash, as
// a fraction, is where its probe sequence begins: lengths need not be powers of two, so that a
// full shard need not double.
type table struct {
	tags  []uint8
	slots []*node
}

func newIndex() index { return index{seed: maphash.MakeSeed()} }

// locate splits a hash into shard, place in it and tag.
func (x *index) locate(path string) (s *shard, place uint32, tag uint8) {
	h := maphash.String(x.seed, path)
	return &x.shards[h>>54], uint32(h), uint8(h>>47) | 0x80
}

func (x *index) get(path string) *node {
	s, place, tag := x.locate(path)
	if i := s.find(path, place, tag); i >= 0 {
		return s.slots[i]
	}
	return nil
}

// home is the slot where the probe sequence of a place begins.
func (t *table) home(place uint32) int {
	return int(uint64(place) * uint64(len(t.tags)) >> 32)
}

// after is the slot after i, in a circle.
func (t *table) after(i int) int {
	if i++; i < len(t.tags) {
		return i
	}
	return 0
}

// find returns the slot of path or -1.
func (t *table) find(path string, place uint32, tag uint8) int {
	if len(t.tags) == 0 {
		return -1
	}
	for i := t.home(place); t.tags[i] != 0; i = t.after(i) {
		if t.tags[i] == tag && t.slots[i].path() == path {
			return i
		}
	}
	return -1
}

// insert adds n, whose path must be new.
func (x *index) insert(n *node) {
	s, place, tag := x.locate(n.path())
	if (s.used+1)*8 > len(s.tags)*7 {
		x.grow(s)
	}
	s.unshare()
	s.put(n, place, tag)
	s.used++
	x.count++
}

// replace puts n in the place of the node with the same path.
func (x *index) replace(n *node) {
	path := n.path()
	s, place, tag := x.locate(path)
	s.unshare()
	s.slots[s.find(path, place, tag)] = n
}

// remove takes path out, moving later entries of the probe sequence back so
// that no tombstones are needed.
func (x *index) remove(path string) {
	s, place, tag := x.locate(path)
	s.unshare()
	hole := s.find(path, place, tag)
	for i := s.after(hole); s.tags[i] != 0; i = s.after(i) {
		h := s.home(uint32(maphash.String(x.seed, s.slots[i].path())))
		// Entry i may move to the hole unless its home is between the two.
		if s.distance(h, i) >= s.distance(hole, i) {
			s.tags[hole], s.slots[hole] = s.tags[i], s.slots[i]
			hole = i
		}
	}
	s.tags[hole], s.slots[hole] = 0, nil
	s.used--
	x.count--
}

// distance is the distance from one slot to another, in a circle.
func (t *table) distance(from, to int) int {
	if d := to - from; d >= 0 {
		return d
	}
	return to - from + len(t.tags)
}

func (t *table) put(n *node, place uint32, tag uint8) {
	i := t.home(place)
	for t.tags[i] != 0 {
		i = t.after(i)
	}
	t.tags[i], t.slots[i] = tag, n
}

// grow makes room: 8 slots, 12, 16, 24, 32 and so on, by a half or a third in turn.
func (x *index) grow(s *shard) {
	size := len(s.tags)
	switch {
	case size == 0:
		size = 8
	case size&(size-1) == 0:
		size += size / 2
	default:
		size += size / 3
	}
	next := table{tags: make([]uint8, size), slots: make([]*node, size)}
	for i, tag := range s.tags {
		if tag != 0 {
			next.put(s.slots[i], uint32(maphash.String(x.seed, s.slots[i].path())), tag)
		}
	}
	s.table, s.shared = next, false
}

func (s *shard) unshare() {
	if !s.shared {
		return
	}
	s.slots = append([]*node(nil), s.slots...)
	s.shared = false
}
