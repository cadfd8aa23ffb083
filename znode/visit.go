package znode

import "hash/maphash"

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
