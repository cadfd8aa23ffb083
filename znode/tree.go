package znode

import (
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
	ephemerals map[SessionID]map[string]struct{} // owner -> paths
	containers map[string]struct{}
	ttls       map[string]struct{}
	quotas     map[string]quotaLimits // quota'd path -> limits
	dataBytes  int64                  // paths and data, as approximate_data_size counts
	sideBytes  int64                  // memory of ephemerals, containers and ttls, about

	gen       uint32
	snapshots atomic.Int32 // snapshots being read; 0 lets the writer edit in place
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
		ephemerals: map[SessionID]map[string]struct{}{},
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

// link puts n into the index and adopts it. The caller updates the parent's
// Stat; n's use of its ACL is already counted.
func (t *Tree) link(n *node) {
	n.gen = t.gen
	t.index.insert(n)
	t.adopt(n)
}

// adopt puts n, which the index holds, among its parent's children and into
// the side tables.
func (t *Tree) adopt(n *node) {
	path := n.path()
	if parent := t.parentOf(path); parent != nil {
		set := t.childrenOf(parent)
		n.slot = uint32(len(set.list))
		set.list = append(set.list, n)
		set.add(1, int64(n.size()))
	}
	t.dataBytes += int64(len(path) + n.size())
	switch {
	case n.isEphemeral():
		set := t.ephemerals[n.owner()]
		if set == nil {
			set = map[string]struct{}{}
			t.ephemerals[n.owner()] = set
		}
		set[strings.Clone(path)] = struct{}{} // n.path() would keep the data alive
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
		set := t.ephemerals[n.owner()]
		delete(set, path)
		if len(set) == 0 {
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
	c := n.copy()
	c.gen = t.gen
	t.index.replace(&c)
	if parent := t.parentOf(c.path()); parent != nil {
		parent.rare.children.list[c.slot] = &c
	}
	return &c
}
