package znode

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// The znodes that every tree has. They cannot be deleted (DataTree's
// isSpecialPath).
const (
	RootPath   = "/"
	SystemPath = "/zookeeper"
	QuotaPath  = "/zookeeper/quota"
	ConfigPath = "/zookeeper/config"
)

// Tree is the tree of znodes. It has one writer at a time; readers may share it
// between writes. Its owner ensures that order.
type Tree struct {
	index      index
	acls       aclTable
	ephemerals map[SessionID]paths // by their owners
	containers map[string]struct{}
	ttls       map[string]struct{}
	quotas     map[string]quotaLimits // quota'd path -> limits
	dataBytes  int64                  // paths and data, as approximate_data_size counts
	sideBytes  int64                  // memory of ephemerals, containers and ttls, about

	gen       uint32
	snapshots atomic.Int32 // snapshots being read; 0 lets the writer edit in place
	replaced  atomic.Int64 // bytes of all znodes that had to be copied because of one
}

// NewTree returns a fresh tree: the root and the znodes of the system, all
// Stats zero, the configuration readable only (DataTree's constructor).
func NewTree() *Tree {
	t := emptyTree()
	for _, path := range []string{RootPath, SystemPath, QuotaPath, ConfigPath} {
		n := &node{}
		// Not null: Curator's EnsembleTracker takes the length of the data.
		n.setBlob(path, []byte{})
		if path == ConfigPath {
			n.acl = t.acls.ref(ReadACL)
		} else {
			t.acls.hold(openACL)
		}
		// The parents' creates stay 0, so that a fresh root shows cversion -1
		// for its one child, as ZooKeeper's does.
		t.link(n)
	}
	return t
}

func emptyTree() *Tree {
	return &Tree{
		index:      newIndex(),
		acls:       newACLTable(),
		ephemerals: map[SessionID]paths{},
		containers: map[string]struct{}{},
		ttls:       map[string]struct{}{},
		quotas:     map[string]quotaLimits{},
	}
}

// get finds a znode; the empty path is another name of the root.
func (t *Tree) get(path string) *node {
	if path == "" {
		path = RootPath
	}
	return t.index.get(path)
}

func (t *Tree) parentOf(path string) *node {
	if path == RootPath {
		return nil
	}
	return t.index.get(Parent(path))
}

// link puts n into the index, among its parent's children and into the side tables. The caller updates the parent's
// Stat; n's use of its ACL is already counted.
func (t *Tree) link(n *node) {
	n.gen = t.gen
	t.index.insert(n)
	if parent := t.parentOf(n.path()); parent != nil {
		set := t.childrenOf(parent)
		set.append(n)
		set.add(1, int64(n.size()))
	}
	t.enter(n)
}

// enter puts n into the side tables.
func (t *Tree) enter(n *node) {
	path := n.path()
	t.dataBytes += int64(len(path) + n.size())
	switch {
	case n.isEphemeral():
		t.ephemerals[n.owner()] = t.ephemerals[n.owner()].with(strings.Clone(path)) // path would keep the data alive
	case n.isContainer():
		t.containers[strings.Clone(path)] = struct{}{}
	case n.isTTL():
		t.ttls[strings.Clone(path)] = struct{}{}
	}
	t.sideBytes += memoryOfSide(n)
	t.noteQuota(n, true)
}

// childrenOf returns the set of n's children, and creates it for the first child.
func (t *Tree) childrenOf(n *node) *children {
	if n.rare == nil || n.rare.children == nil {
		// All copies of n made from now on share the set. No snapshot contains a
		// parent without a set: insert has edited it.
		set := &children{}
		if parent := t.parentOf(n.path()); parent != nil {
			set.up = t.childrenOf(parent)
		}
		n.editRare().children = set
	}
	return n.rare.children
}

// unlink is the inverse of link.
func (t *Tree) unlink(n *node) {
	path := n.path()
	t.sideBytes -= memoryOfSide(n)
	t.noteQuota(n, false)
	t.index.remove(path)
	if parent := t.parentOf(path); parent != nil {
		set := parent.rare.children
		last := len(set.list) - 1
		if moved := set.list[last]; moved != n {
			moved = t.own(moved)
			moved.slot = n.slot
			set.list[n.slot] = moved
		}
		set.names -= len(Base(path))
		set.list[last] = nil
		set.list = set.list[:last]
		if cap(set.list) > 64 && last < cap(set.list)/4 {
			set.list = append(make([]*node, 0, cap(set.list)/2), set.list...)
		}
		set.add(-1, -int64(n.size()))
	}
	t.dataBytes -= int64(len(path) + n.size())
	switch {
	case n.isEphemeral():
		if set := t.ephemerals[n.owner()].without(path); set.len() > 0 {
			t.ephemerals[n.owner()] = set
		} else {
			delete(t.ephemerals, n.owner())
		}
	case n.isContainer():
		delete(t.containers, path)
	case n.isTTL():
		delete(t.ttls, path)
	}
}

// replaceBlob gives n, which is linked, another blob with the same path.
func (t *Tree) replaceBlob(n *node, put func()) {
	was := n.size()
	put()
	if diff := int64(n.size() - was); diff != 0 {
		t.dataBytes += diff
		if parent := t.parentOf(n.path()); parent != nil {
			parent.rare.children.add(0, diff)
		}
	}
	t.noteQuota(n, true)
}

// own returns a copy of n that the writer may edit: n itself, unless a
// snapshot that is still being read contains it.
func (t *Tree) own(n *node) *node {
	if n.gen == t.gen {
		return n
	}
	if t.snapshots.Load() == 0 {
		n.gen = t.gen
		return n
	}
	t.replaced.Add(CreateMemory(n.path(), n.size()))
	c := n.copy()
	c.gen = t.gen
	t.index.replace(&c)
	if parent := t.parentOf(c.path()); parent != nil {
		parent.rare.children.list[c.slot] = &c
	}
	return &c
}

// index finds znodes by path: a hash table in shards, each an open-addressed table with linear probing. It exists
// because Go's map costs 24 bytes a slot for a path that the node holds anyway; here a slot is a pointer and four bytes
// of the hash, so that paths need not be read to move a znode. Shards grow on their own, so no insert ever waits for
// the whole table, and a snapshot shares the shards' slots until the writer next touches them.
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

// table is the hash table of a shard. A snapshot takes the slots only. hashes[i] is that of slots[i]'s path, as split
// returns it, and 0 for a free slot. As a fraction it is where its probe sequence begins: lengths need not be powers of
// two, so that a full shard need not double.
type table struct {
	hashes []uint32
	slots  []*node
}

func newIndex() index { return index{seed: maphash.MakeSeed()} }

// split divides the hash of a path between the number of its shard and its place in that, which is not 0.
func split(hash uint64) (shard int, place uint32) { return int(hash >> 54), uint32(hash) | 1 }

// locate returns the shard of a path, and its place in it.
func (x *index) locate(path string) (s *shard, place uint32) {
	i, place := split(maphash.String(x.seed, path))
	return &x.shards[i], place
}

func (x *index) get(path string) *node {
	s, place := x.locate(path)
	if i := s.find(path, place); i >= 0 {
		return s.slots[i]
	}
	return nil
}

// home is the slot where the probe sequence of a place begins.
func (t *table) home(place uint32) int {
	return int(uint64(place) * uint64(len(t.hashes)) >> 32)
}

// after is the slot after i, in a circle.
func (t *table) after(i int) int {
	if i++; i < len(t.hashes) {
		return i
	}
	return 0
}

// find returns the slot of path or -1.
func (t *table) find(path string, place uint32) int {
	if len(t.hashes) == 0 {
		return -1
	}
	for i := t.home(place); t.hashes[i] != 0; i = t.after(i) {
		if t.hashes[i] == place && t.slots[i].path() == path {
			return i
		}
	}
	return -1
}

// insert adds n, whose path must be new.
func (x *index) insert(n *node) {
	s, place := x.locate(n.path())
	if s.used == fullAt(len(s.hashes)) {
		x.grow(s)
	}
	s.unshare()
	s.put(n, place)
	s.used++
	x.count++
}

// replace puts n in the place of the node with the same path.
func (x *index) replace(n *node) {
	path := n.path()
	s, place := x.locate(path)
	s.unshare()
	s.slots[s.find(path, place)] = n
}

// remove takes path out, moving later entries of the probe sequence back so
// that no tombstones are needed.
func (x *index) remove(path string) {
	s, place := x.locate(path)
	s.unshare()
	hole := s.find(path, place)
	for i := s.after(hole); s.hashes[i] != 0; i = s.after(i) {
		h := s.home(s.hashes[i])
		// Entry i may move to the hole unless its home is between the two.
		if s.distance(h, i) >= s.distance(hole, i) {
			s.hashes[hole], s.slots[hole] = s.hashes[i], s.slots[i]
			hole = i
		}
	}
	s.hashes[hole], s.slots[hole] = 0, nil
	s.used--
	x.count--
}

// distance is the distance from one slot to another, in a circle.
func (t *table) distance(from, to int) int {
	if d := to - from; d >= 0 {
		return d
	}
	return to - from + len(t.hashes)
}

func (t *table) put(n *node, place uint32) {
	i := t.home(place)
	for t.hashes[i] != 0 {
		i = t.after(i)
	}
	t.hashes[i], t.slots[i] = place, n
}

func newTable(size int) table { return table{hashes: make([]uint32, size), slots: make([]*node, size)} }

// fullAt is how many znodes a table of this size may hold.
func fullAt(size int) int { return size * 7 / 8 }

// larger is the size after this one: 8 slots, 12, 16, 24, 32 and so on, by a half or a third in turn.
func larger(size int) int {
	if size&(size-1) == 0 {
		return max(8, size+size/2)
	}
	return size + size/3
}

// grow makes room.
func (x *index) grow(s *shard) {
	next := newTable(larger(len(s.hashes)))
	for i, place := range s.hashes {
		if place != 0 {
			next.put(s.slots[i], place)
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
