package znode

import (
	"slices"
	"strings"
)

// Delete removes a childless znode. The order of the checks is that of
// ZooKeeper's PrepRequestProcessor: it checks the parent's permission before it
// checks whether the znode exists.
//
// Errors: ErrBadArguments (no path at all, or one of the system's), ErrNoNode,
// ErrNoAuth (DELETE on the parent), ErrBadVersion, ErrNotEmpty.
func (t *Tree) Delete(x *Txn, path string, version Version) Error {
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 || strings.IndexByte(path, 0) >= 0 || isSystem(path) {
		return ErrBadArguments
	}
	parent := t.get(path[:slash])
	if parent == nil {
		return ErrNoNode
	}
	if !t.permits(x, parent.acl, PermDelete) {
		return ErrNoAuth
	}
	n := t.get(path)
	switch {
	case n == nil:
		return ErrNoNode
	case version != AnyVersion && version != n.version:
		return ErrBadVersion
	case n.numChildren() > 0:
		return ErrNotEmpty
	}
	t.delete(x, n)
	return OK
}

// Reap removes a container or TTL znode that is due. The leader chose it a
// while ago, so Reap checks everything again, except permissions.
//
// Errors: ErrNoNode, ErrBadVersion (not a container or TTL znode, or changed
// since), ErrNotEmpty.
func (t *Tree) Reap(x *Txn, path string) Error {
	n := t.get(path)
	switch {
	case n == nil || isSystem(path):
		return ErrNoNode
	case !n.isContainer() && !n.isTTL():
		return ErrBadVersion
	case n.numChildren() > 0:
		return ErrNotEmpty
	case n.isTTL() && x.TimeMillis-n.mtime <= n.ttlMillis():
		return ErrBadVersion
	}
	t.delete(x, n)
	return OK
}

// DeleteOwned removes every ephemeral of a session, in the order of their
// paths so that all replicas emit the same events, and returns the paths.
func (t *Tree) DeleteOwned(x *Txn, owner SessionID) []string {
	paths := t.Ephemerals(owner, "")
	slices.Sort(paths)
	for _, path := range paths {
		t.delete(x, t.get(path))
	}
	return paths
}

func (t *Tree) delete(x *Txn, n *node) {
	path, size := n.path(), int64(n.size())
	t.remove(x, n)
	t.chargeQuota(x, path, -size, -1)
}

func isSystem(path string) bool {
	switch path {
	case "", RootPath, SystemPath, QuotaPath, ConfigPath:
		return true
	}
	return false
}
