package znode

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"runtime"
	"strings"
	"sync/atomic"
)

// Builder makes a tree of the Records of a snapshot. While one goroutine decodes Records and adds them, another links
// those that were added just before, and so are in the processor's cache still.
type Builder struct {
	tree *Tree
	next []*node // added, and not being linked yet

	idle chan struct{} // holds a token while nothing is being linked

	// The goroutine that links has the rest to itself, and all of the tree but its ACLs.
	digest   Digest
	shards   [indexShards][]placed
	families []*family
	byParent map[string]*family
}

// placed is a znode that a shard of the index will hold, with its place there.
type placed struct {
	n     *node
	place uint32
}

// family is the children of the znode at a path, which may come later than they.
type family struct {
	path  string
	set   *children
	bytes int64 // their data
}

// linkBatch is how many znodes are linked together.
const linkBatch = 2048

// NewBuilder returns an empty Builder.
func NewBuilder() *Builder {
	b := &Builder{tree: emptyTree(), idle: make(chan struct{}, 1), byParent: map[string]*family{}}
	b.idle <- struct{}{}
	return b
}

// Add adds one znode; the order does not matter.
func (b *Builder) Add(r *Record) error {
	if err := ValidatePath(r.Path); err != nil {
		return fmt.Errorf("adding znode: %w", err)
	}
	n := &node{
		czxid: r.Stat.Czxid, mzxid: r.Stat.Mzxid, ctime: r.Stat.Ctime, mtime: r.Stat.Mtime,
		version: r.Stat.Version, acl: b.tree.acls.ref(r.ACL),
	}
	x := rare{
		pzxid: r.Stat.Pzxid, owner: r.Stat.EphemeralOwner,
		creates: int32(r.Stat.Cversion), aversion: r.Stat.Aversion,
	}
	if x != n.readRare() {
		n.rare = &x
	}
	n.setBlob(r.Path, r.Data)
	if b.next = append(b.next, n); len(b.next) == linkBatch {
		b.flush()
	}
	return nil
}

// flush begins to link what was added, once what was added before is linked.
func (b *Builder) flush() {
	<-b.idle
	nodes, acls := b.next, b.tree.acls.lists
	b.next = make([]*node, 0, linkBatch)
	go func() {
		for _, n := range nodes {
			b.link(n, acls)
		}
		b.idle <- struct{}{}
	}()
}

// link puts n among its siblings, and into all tables but the index, whose size is not known yet.
func (b *Builder) link(n *node, acls []aclEntry) {
	r := n.record(acls)
	b.digest.Add(&r)
	i, place := split(maphash.String(b.tree.index.seed, r.Path))
	b.shards[i] = append(b.shards[i], placed{n, place})
	b.tree.enter(n)
	if r.Path == RootPath {
		return
	}
	parent := Parent(r.Path)
	f := b.byParent[parent]
	if f == nil {
		f = &family{path: strings.Clone(parent), set: &children{}}
		b.byParent[f.path] = f
		b.families = append(b.families, f)
	}
	f.set.append(n)
	f.bytes += int64(len(r.Data))
}

// Tree makes the index, gives parents their children, and returns the tree. It fails if a path was added twice, if a
// znode has no parent, or if a system znode is missing.
func (b *Builder) Tree() (*Tree, error) {
	b.flush()
	<-b.idle
	t := b.tree
	if err := b.fillIndex(); err != nil {
		return nil, fmt.Errorf("building tree: %w", err)
	}
	for _, path := range []string{RootPath, SystemPath, QuotaPath, ConfigPath} {
		if t.get(path) == nil {
			return nil, fmt.Errorf("building tree: %s is missing", path)
		}
	}
	for _, f := range b.families {
		parent := t.get(f.path)
		if parent == nil {
			return nil, fmt.Errorf("building tree: %q has no parent", f.set.list[0].path())
		}
		parent.editRare().children = f.set
		if f.path != RootPath {
			f.set.up = b.byParent[Parent(f.path)].set
		}
	}
	for _, f := range b.families {
		f.set.add(len(f.set.list), f.bytes)
	}
	return t, nil
}

// Digest is Snapshot.Digest of the tree that Tree has returned.
func (b *Builder) Digest() uint64 { return b.digest.Sum }

// fillIndex makes the shards of the index, on all processors.
func (b *Builder) fillIndex() (err error) {
	index := &b.tree.index
	var next atomic.Int64
	ends := make(chan error)
	workers := runtime.GOMAXPROCS(0)
	for range workers {
		go func() {
			var err error
			for i := next.Add(1) - 1; i < indexShards && err == nil; i = next.Add(1) - 1 {
				err = index.shards[i].fill(b.shards[i])
				b.shards[i] = nil
			}
			ends <- err
		}()
	}
	for range workers {
		err = cmp.Or(err, <-ends)
	}
	for i := range index.shards {
		index.count += index.shards[i].used
	}
	return err
}

// fill makes an empty shard one of these znodes.
func (s *shard) fill(nodes []placed) error {
	size := 0
	for fullAt(size) < len(nodes) {
		size = larger(size)
	}
	s.table, s.used = newTable(size), len(nodes)
	for _, p := range nodes {
		i := s.home(p.place)
		for ; s.hashes[i] != 0; i = s.after(i) {
			if s.hashes[i] == p.place && s.slots[i].path() == p.n.path() {
				return fmt.Errorf("%q is there twice", p.n.path())
			}
		}
		s.hashes[i], s.slots[i] = p.place, p.n
	}
	return nil
}
