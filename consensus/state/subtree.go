package state

import (
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// MaxSubtree bounds the znodes that OpDeleteAll deletes: all other commands wait while it
// is applied, about a microsecond per znode.
const MaxSubtree = 10_000

// deleteAll deletes a znode and all below it, or nothing. It finds the znodes below
// here, so that the effect and the result of the command follow from it and its place
// in the log alone: a repetition with the same Key is the same command.
//
// It requires permission to read every znode and to delete below each parent, as does a
// client that lists and deletes one by one. ErrNotEmpty means that there are more than
// MaxSubtree; with ErrNoAuth the result's Path is the znode whose ACL forbids it.
func (m *Machine) deleteAll(c *Command) {
	r := &m.result
	r.Path = c.Path
	below, path, code := m.below(c.Path)
	if code != znode.OK {
		r.Code, r.Path = code, path
		return
	}
	m.tree.Begin(&m.txn)
	for _, path := range slices.Backward(below) {
		if r.Path, r.Code = path, m.tree.Delete(&m.txn, path, znode.AnyVersion); r.Code != znode.OK {
			break
		}
	}
	if r.Code == znode.OK {
		if r.Path, r.Code = c.Path, m.guard(c, znode.Parent(c.Path), znode.PermDelete); r.Code == znode.OK {
			r.Code = m.tree.Delete(&m.txn, c.Path, c.Version)
		}
	}
	switch r.Code {
	case znode.OK:
		m.tree.Commit(&m.txn)
		return
	case znode.ErrNoAuth:
		r.Path = znode.Parent(r.Path)
	}
	m.tree.Rollback(&m.txn)
}

// below lists the znodes below a znode, parents before their children, or returns the
// path at which it failed. There are none below a znode that does not exist.
func (m *Machine) below(path string) (paths []string, failed string, code znode.Error) {
	if znode.ValidatePath(path) != nil {
		return nil, path, znode.ErrBadArguments
	}
	pending := []string{path}
	for len(pending) > 0 {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		st, code := m.tree.Exists(at, m.txn.Identities)
		switch {
		case code == znode.ErrNoNode && len(paths) == 0:
			return nil, "", znode.OK // deleting it will fail
		case code != znode.OK:
			return nil, at, code
		case len(paths)+int(st.NumChildren) >= MaxSubtree:
			return nil, path, znode.ErrNotEmpty
		case st.NumChildren == 0:
			continue
		}
		names, _, code := m.tree.Children(at, m.txn.Identities)
		if code != znode.OK {
			return nil, at, code
		}
		for _, name := range names {
			child := znode.Join(at, name)
			paths, pending = append(paths, child), append(pending, child)
		}
	}
	return paths, "", znode.OK
}
