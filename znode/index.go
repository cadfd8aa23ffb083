package znode

import "hash/maphash"

// index finds znodes by path: a hash table in shards, each an open-addressed
// table with linear probing. It exists because Go's map costs 24 bytes a slot
// for a path that the node holds anyway; here a slot is a pointer and a tag
// byte. Shards grow on their own, so no insert ever waits for the whole table,
// and a snapshot shares the shards' arrays until the writer next touches them.
type index struct {
	seed   maphash.Seed
	shards [indexShards]shard
	count  int
}

// indexShards bounds what one insert may copy: at ten million znodes a shard
// has 10,000 entries, about 150 KB.
const indexShards = 1024

type shard struct {
	table
	used   int
	shared bool // a snapshot may be reading the arrays: copy before writing
}

// table is the part of a shard that a snapshot takes. tags[i] is 0 for a free
// slot, else 0x80 and seven bits of the hash of slots[i]'s path.
type table struct {
	tags  []uint8
	slots []*node
}

func newIndex() index { return index{seed: maphash.MakeSeed()} }

// locate splits a hash into shard, home slot and tag.
func (x *index) locate(path string) (s *shard, home uint64, tag uint8) {
	h := maphash.String(x.seed, path)
	return &x.shards[h>>54], h, uint8(h>>47) | 0x80
}

func (x *index) get(path string) *node {
	s, home, tag := x.locate(path)
	if i := s.find(path, home, tag); i >= 0 {
		return s.slots[i]
	}
	return nil
}

// find returns the slot of path or -1.
func (t *table) find(path string, home uint64, tag uint8) int {
	if len(t.tags) == 0 {
		return -1
	}
	mask := uint64(len(t.tags) - 1)
	for i := home & mask; t.tags[i] != 0; i = (i + 1) & mask {
		if t.tags[i] == tag && t.slots[i].path() == path {
			return int(i)
		}
	}
	return -1
}

// insert adds n, whose path must not be there.
func (x *index) insert(n *node) {
	s, home, tag := x.locate(n.path())
	if (s.used+1)*8 > len(s.tags)*7 {
		x.grow(s)
	}
	s.unshare()
	s.put(n, home, tag)
	s.used++
	x.count++
}

// replace puts n in the place of the node with the same path.
func (x *index) replace(n *node) {
	path := n.path()
	s, home, tag := x.locate(path)
	s.unshare()
	s.slots[s.find(path, home, tag)] = n
}

// remove takes path out, moving later entries of the probe sequence back so
// that no tombstones are needed.
func (x *index) remove(path string) {
	s, home, tag := x.locate(path)
	s.unshare()
	hole := s.find(path, home, tag)
	mask := len(s.tags) - 1
	for i := (hole + 1) & mask; s.tags[i] != 0; i = (i + 1) & mask {
		h := int(maphash.String(x.seed, s.slots[i].path())) & mask
		// Entry i may move to the hole unless its home lies between the two.
		if (i-h)&mask >= (i-hole)&mask {
			s.tags[hole], s.slots[hole] = s.tags[i], s.slots[i]
			hole = i
		}
	}
	s.tags[hole], s.slots[hole] = 0, nil
	s.used--
	x.count--
}

func (t *table) put(n *node, home uint64, tag uint8) {
	mask := uint64(len(t.tags) - 1)
	i := home & mask
	for t.tags[i] != 0 {
		i = (i + 1) & mask
	}
	t.tags[i], t.slots[i] = tag, n
}

func (x *index) grow(s *shard) {
	size := max(8, 2*len(s.tags))
	next := table{tags: make([]uint8, size), slots: make([]*node, size)}
	for i, tag := range s.tags {
		if tag != 0 {
			next.put(s.slots[i], maphash.String(x.seed, s.slots[i].path()), tag)
		}
	}
	s.table, s.shared = next, false
}

func (s *shard) unshare() {
	if !s.shared {
		return
	}
	s.tags = append([]uint8(nil), s.tags...)
	s.slots = append([]*node(nil), s.slots...)
	s.shared = false
}
