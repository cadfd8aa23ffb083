package znode

import (
	"slices"
	"sort"
	"strings"
)

// What a small subtree has at most: reading it keeps writers out for less than a millisecond.
const (
	smallZnodes = 2000
	smallBytes  = 1 << 20 // of data
)

// What is kept for a large subtree alone, because it was replaced meanwhile: a part of the tree's memory, or some
// bytes.
const (
	keptShare = 4
	keptBytes = 64 << 20
)

// Subtree is a znode and all below it at one moment, as one client may see them. One goroutine may read it while the
// writer continues; Release it when done.
type Subtree struct {
	root    string
	ids     []ID
	frozen  *Snapshot  // nil: nodes are copies
	room    int64      // Tree.replaced may be so much
	acls    []aclEntry // that nodes refer to
	granted map[aclID]grantedACL

	nodes    []*node  // parents before children, and siblings by name
	children []uint32 // children[i] is how many nodes[i] has: the lists in the tree are of the present
	bytes    int64    // of paths and data
	at       int      // the next
}

// SubtreeRecord is a znode of a Subtree.
type SubtreeRecord struct {
	Record      // with the Stat and the ACL that clients see
	Mode   Mode // Persistent, Ephemeral, Container or PersistentTTL
	// Hidden means that the client may not read the znode: nothing is known but its path, and those below it are left
	// out.
	Hidden bool
}

// grantedACL is what a client may do with the znodes of an ACL, and what it sees of that.
type grantedACL struct {
	perms Perms
	shown []ACL
}

// Subtree returns a subtree, to be listed with List, which takes no lock. A large one keeps a Snapshot until it is
// released, and may be taken as Tree.Snapshot; with small, it is nil instead.
//
// Errors: ErrNoNode, ErrNoAuth (READ).
func (t *Tree) Subtree(root string, ids []ID, small bool) (*Subtree, Error) {
	n, code := t.readable(root, PermRead, ids)
	if code != OK {
		return nil, code
	}
	s := &Subtree{root: root, ids: ids, granted: map[aclID]grantedACL{}}
	znodes, bytes := n.below()
	switch large := znodes >= smallZnodes || bytes+int64(n.size()) > smallBytes; {
	case !large:
		s.copy(t, n)
	case small:
		return nil, OK
	default:
		s.freeze(t, znodes)
	}
	return s, OK
}

// freeze takes a snapshot, of which List finds the root and so many znodes below it.
func (s *Subtree) freeze(t *Tree, znodes int) {
	s.frozen, s.room = t.Snapshot(), t.replaced.Load()+max(keptBytes, t.Memory()/keptShare)
	s.acls, s.nodes = s.frozen.acls, make([]*node, 0, znodes+1)
}

// copy takes copies of n and all below it.
func (s *Subtree) copy(t *Tree, n *node) {
	acls := map[aclID]aclID{}
	for pending := []*node{n}; len(pending) > 0; {
		n := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], n.childList()...)
		c := n.copy()
		id, there := acls[n.acl]
		if !there {
			id = aclID(len(s.acls))
			acls[n.acl], s.acls = id, append(s.acls, t.acls.lists[n.acl])
		}
		c.acl = id
		s.nodes = append(s.nodes, &c)
	}
}

// List finds and sorts the znodes. For a large subtree it looks at the whole tree, and takes some seconds for each
// million znodes.
func (s *Subtree) List() {
	if s.frozen != nil {
		for _, slots := range s.frozen.slots {
			for _, n := range slots {
				if n != nil && within(s.root, n.path()) {
					s.nodes = append(s.nodes, n)
				}
			}
		}
	}
	slices.SortFunc(s.nodes, func(a, b *node) int { return comparePaths(a.path(), b.path()) })
	s.children = make([]uint32, len(s.nodes))
	var above []int // the places of the ancestors of the znode before, and its own
	for i, n := range s.nodes {
		path := n.path()
		s.bytes += int64(len(path) + n.size())
		for len(above) > 0 && !within(s.nodes[above[len(above)-1]].path(), path) {
			above = above[:len(above)-1]
		}
		if len(above) > 0 {
			s.children[above[len(above)-1]]++
		}
		above = append(above, i)
	}
}

// Size returns how many znodes there are, whether the client may read them or not, and the bytes of their paths and
// data. It may be called after List.
func (s *Subtree) Size() (znodes int, bytes int64) { return len(s.nodes), s.bytes }

// Place is where Next is: its znode is the first after GoTo. It is less than 0 behind the last.
func (s *Subtree) Place() int64 {
	if s.at == len(s.nodes) {
		return -1
	}
	return int64(s.at)
}

// GoTo continues at a Place.
func (s *Subtree) GoTo(place int64) { s.at = int(min(max(place, 0), int64(len(s.nodes)))) }

// Next returns the next znode: parents come before children and siblings by name. ok is false after the last.
func (s *Subtree) Next() (r SubtreeRecord, ok bool) {
	if s.at == len(s.nodes) {
		return r, false
	}
	n := s.nodes[s.at]
	r.Path = n.path()
	g := s.grantedBy(n.acl)
	if r.Hidden = g.perms&PermRead == 0; r.Hidden {
		// They are one behind the other.
		s.at += sort.Search(len(s.nodes)-s.at, func(i int) bool { return !within(r.Path, s.nodes[s.at+i].path()) })
		return r, true
	}
	r.Data, r.ACL, r.Mode = n.data(), g.shown, n.mode()
	r.Stat = n.statWith(int32(s.children[s.at]))
	s.at++
	return r, true
}

// grantedBy evaluates each ACL once: a list may be long, and most znodes share a few.
func (s *Subtree) grantedBy(id aclID) grantedACL {
	g, known := s.granted[id]
	if !known {
		list := s.acls[id].list
		g = grantedACL{granted(list, PermRead|PermAdmin, s.ids), list}
		if g.perms&PermAdmin == 0 {
			g.shown = withoutHashes(list)
		}
		s.granted[id] = g
	}
	return g
}

// Outgrown reports whether so much was replaced meanwhile, and is in memory for this subtree alone, that it should be
// given up.
func (s *Subtree) Outgrown() bool { return s.frozen != nil && s.frozen.tree.replaced.Load() > s.room }

// Release lets the writer edit in place again.
func (s *Subtree) Release() {
	if s.frozen != nil {
		s.frozen.Release()
	}
	*s = Subtree{}
}

// within reports whether path is root or below it.
func within(root, path string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/' || root == RootPath)
}

// comparePaths puts parents before children, and all that is below a znode before its next sibling: the separator comes
// before every other character.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}
