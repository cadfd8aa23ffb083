package znode

import (
	"hash/maphash"
	"slices"
	"strings"
)

// The reads. The tree never changes the data and names that they return; the
// slices of names belong to the caller.

// Exists returns a znode's Stat.
//
// Errors: ErrNoNode, ErrNoAuth (READ; checked since ZooKeeper 3.9.2).
func (t *Tree) Exists(path string, ids []ID) (Stat, Error) {
	n, code := t.readable(path, PermRead, ids)
	if code != OK {
		return Stat{}, code
	}
	return n.stat(), OK
}

// ModeOf returns how long a znode lives: Persistent, Ephemeral, Container or PersistentTTL.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (t *Tree) ModeOf(path string, ids []ID) (Mode, Error) {
	n, code := t.readable(path, PermRead, ids)
	if code != OK {
		return 0, code
	}
	return n.mode(), OK
}

// Get returns a znode's data, nil for null, and its Stat.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (t *Tree) Get(path string, ids []ID) ([]byte, Stat, Error) {
	n, code := t.readable(path, PermRead, ids)
	if code != OK {
		return nil, Stat{}, code
	}
	return n.data(), n.stat(), OK
}

// Children returns the names of a znode's children in an order that does not
// change while they do not, and its Stat.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (t *Tree) Children(path string, ids []ID) ([]string, Stat, Error) {
	n, code := t.readable(path, PermRead, ids)
	if code != OK {
		return nil, Stat{}, code
	}
	names := make([]string, 0, n.numChildren())
	for _, c := range n.childList() {
		names = append(names, Base(c.path()))
	}
	return names, n.stat(), OK
}

// NamesBytes returns the size of the names of a znode's children together, 0 if there is no such znode. It takes the
// same time for any number of children.
func (t *Tree) NamesBytes(path string) int {
	n := t.index.get(path)
	if n == nil || n.rare == nil || n.rare.children == nil {
		return 0
	}
	return n.rare.children.names
}

// ACLOf returns a znode's ACL and Stat. A client that may not administer it sees
// digests without their hash (FinalRequestProcessor).
//
// Errors: ErrNoNode, ErrNoAuth (READ or ADMIN).
func (t *Tree) ACLOf(path string, ids []ID) ([]ACL, Stat, Error) {
	n, code := t.readable(path, PermRead|PermAdmin, ids)
	if code != OK {
		return nil, Stat{}, code
	}
	list := t.acls.get(n.acl)
	if !Permits(list, PermAdmin, ids) {
		return withoutHashes(list), n.stat(), OK
	}
	return slices.Clone(list), n.stat(), OK
}

// Descendants counts the znodes below path.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (t *Tree) Descendants(path string, ids []ID) (int, Error) {
	n, code := t.readable(path, PermRead, ids)
	if code != OK {
		return 0, code
	}
	count, _ := n.below()
	if path == "" {
		count++ // ZooKeeper counts from the path, of which "" is not the root's
	}
	return count, OK
}

// Ephemerals returns the paths of a session's ephemerals that start with
// prefix, in no particular order.
func (t *Tree) Ephemerals(owner SessionID, prefix string) []string {
	set := t.ephemerals[owner]
	list := make([]string, 0, set.len())
	for path := range set.all {
		if strings.HasPrefix(path, prefix) {
			list = append(list, path)
		}
	}
	return list
}

// EphemeralCount is how many ephemerals a session owns.
func (t *Tree) EphemeralCount(owner SessionID) int { return t.ephemerals[owner].len() }

// EphemeralOwners calls visit for every session that owns ephemerals.
func (t *Tree) EphemeralOwners(visit func(owner SessionID, count int)) {
	for owner, set := range t.ephemerals {
		visit(owner, set.len())
	}
}

// Size is the size of a tree.
type Size struct {
	Znodes     int   // without ZooKeeper's alias "" of the root
	Ephemerals int   // znodes that belong to a session
	Bytes      int64 // paths and data
}

// Size counts the tree.
func (t *Tree) Size() Size {
	s := Size{Znodes: t.index.count, Bytes: t.dataBytes}
	for _, set := range t.ephemerals {
		s.Ephemerals += set.len()
	}
	return s
}

// Reapable returns at most limit containers and TTL znodes that may be removed
// at the given time: childless, and either a container that had a child, or
// that was never used and unchanged for longer than neverUsed milliseconds (0:
// keep those; ContainerManager.getElapsed), or a TTL znode unchanged for its
// TTL.
func (t *Tree) Reapable(nowMillis, neverUsed int64, limit int) []string {
	var paths []string
	for path := range t.containers {
		if len(paths) >= limit {
			break
		}
		n := t.get(path)
		idle := n.readRare().creates > 0 || neverUsed > 0 && nowMillis-n.mtime > neverUsed
		if n.numChildren() == 0 && idle {
			paths = append(paths, path)
		}
	}
	for path := range t.ttls {
		if len(paths) >= limit {
			break
		}
		n := t.get(path)
		if n.numChildren() == 0 && nowMillis-n.mtime > n.ttlMillis() {
			paths = append(paths, path)
		}
	}
	return paths
}

func (t *Tree) readable(path string, want Perms, ids []ID) (*node, Error) {
	n := t.get(path)
	switch {
	case n == nil:
		return nil, ErrNoNode
	case !Permits(t.acls.get(n.acl), want, ids):
		return nil, ErrNoAuth
	}
	return n, OK
}

// Reads of many znodes, a few at a time, so that no writer waits long.

// VisitChildren calls visit with the names of the children at the positions [from, to) of a znode's list, as far as
// they exist, and returns the znode's Stat. The order is this server's own: a new child comes last, and the last child
// takes the position of a deleted one. Visiting the positions from the end to the beginning therefore shows each child
// that is not deleted, whatever changes between the calls; some perhaps twice.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (t *Tree) VisitChildren(path string, from, to int, ids []ID, visit func(name string)) (Stat, Error) {
	n, code := t.readable(path, PermRead, ids)
	if code != OK {
		return Stat{}, code
	}
	list := n.childList()
	to = min(to, len(list))
	for _, c := range list[min(from, to):to] {
		visit(Base(c.path()))
	}
	return n.stat(), OK
}

// Parts is the number of parts in which Visit shows a tree.
const Parts = indexShards

// Seed identifies how a tree distributes its znodes over parts.
func (t *Tree) Seed() uint32 { return uint32(maphash.String(t.index.seed, "")) }

// Visit calls visit for each znode of a part, without checking permissions, in no particular order. A znode stays in
// its part as long as it exists.
func (t *Tree) Visit(part int, visit func(path string, data []byte, s *Stat)) {
	for _, n := range t.index.shards[part].slots {
		if n != nil {
			s := n.stat()
			visit(n.path(), n.data(), &s)
		}
	}
}

// Visible reports whether a znode exists and these identities may read it and all its ancestors: a client that
// may not list a znode's children must not learn of them otherwise.
func (t *Tree) Visible(path string, ids []ID) bool {
	for {
		if _, code := t.readable(path, PermRead, ids); code != OK {
			return false
		}
		if path == RootPath {
			return true
		}
		path = Parent(path)
	}
}

// Tellable reports whether these identities may learn of a path, whether or not it has a znode: the existing part of
// the path is Visible to them.
func (t *Tree) Tellable(path string, ids []ID) bool {
	for {
		if _, code := t.readable(path, PermRead, ids); code != ErrNoNode {
			return t.Visible(path, ids)
		}
		path = Parent(path)
	}
}

// About describes a znode beyond its data and Stat.
type About struct {
	Kind      string // persistent, ephemeral, container or ttl
	TTLMillis int64  // of kind ttl
	Perms     Perms  // that the identities have
	Below     Size   // the znodes below it
}

// About describes a znode; most bounds the znodes below it that it counts.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (t *Tree) About(path string, ids []ID, most int) (About, Stat, Error) {
	n, code := t.readable(path, PermRead, ids)
	if code != OK {
		return About{}, Stat{}, code
	}
	a := About{Kind: "persistent"}
	switch {
	case n.isEphemeral():
		a.Kind = "ephemeral"
	case n.isContainer():
		a.Kind = "container"
	case n.isTTL():
		a.Kind, a.TTLMillis = "ttl", n.ttlMillis()
	}
	a.Perms = granted(t.acls.get(n.acl), PermAll, ids)
	t.countBelow(n, &a.Below, most)
	return a, n.stat(), OK
}

func (t *Tree) countBelow(n *node, s *Size, most int) {
	for pending := []*node{n}; len(pending) > 0; {
		parent := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, c := range parent.childList() {
			if s.Znodes == most {
				return
			}
			s.Znodes++
			s.Bytes += int64(len(c.path()) + c.size())
			if c.isEphemeral() {
				s.Ephemerals++
			}
			if c.numChildren() > 0 {
				pending = append(pending, c)
			}
		}
	}
}

// SubtreeSize is the size of a znode with all below it.
type SubtreeSize struct {
	Path     string
	Znodes   int
	Bytes    int64 // of data
	Children int
}

func subtreeSize(n *node) SubtreeSize {
	znodes, bytes := n.below()
	return SubtreeSize{n.path(), znodes + 1, bytes + int64(n.size()), n.numChildren()}
}

// SubtreeSize returns the size of a subtree, without looking at the znodes in it nor checking permissions.
func (t *Tree) SubtreeSize(path string) (s SubtreeSize, ok bool) {
	if n := t.get(path); n != nil {
		return subtreeSize(n), true
	}
	return s, false
}

// VisitSubtreeSizes is SubtreeSize for the children of a znode at the positions [from, to) of its list, which are those
// of VisitChildren.
func (t *Tree) VisitSubtreeSizes(path string, from, to int, visit func(SubtreeSize)) {
	n := t.get(path)
	if n == nil {
		return
	}
	list := n.childList()
	to = min(to, len(list))
	for _, c := range list[min(from, to):to] {
		visit(subtreeSize(c))
	}
}
