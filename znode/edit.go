package znode

import (
	"slices"
	"strings"
)

// SetData replaces a znode's data; nil stores null.
//
// Errors: ErrBadArguments (path), ErrNoNode, ErrNoAuth (WRITE),
// ErrQuotaExceeded, ErrBadVersion.
func (t *Tree) SetData(x *Txn, path string, data []byte, version Version) (Stat, Error) {
	n, code := t.checked(x, path, PermWrite)
	if code != OK {
		return Stat{}, code
	}
	diff := int64(len(data)) - int64(n.size())
	if code := t.checkQuota(x, path, diff, 0); code != OK {
		return Stat{}, code
	}
	if version != AnyVersion && version != n.version {
		return Stat{}, ErrBadVersion
	}
	n = t.replaceData(x, n, data)
	t.chargeQuota(x, path, diff, 0)
	return n.stat(), OK
}

// SetACL replaces a znode's ACL. version is compared with the ACL's own
// version; the data's version and the children are not touched.
//
// Errors: ErrBadArguments (path), ErrInvalidACL, ErrNoNode, ErrNoAuth (ADMIN),
// ErrBadVersion.
func (t *Tree) SetACL(x *Txn, path string, acl []ACL, version Version) (Stat, Error) {
	if ValidatePath(path) != nil {
		return Stat{}, ErrBadArguments
	}
	list, code := fixACL(acl, x.Identities)
	if code != OK {
		return Stat{}, code
	}
	n, code := t.checked(x, path, PermAdmin)
	if code != OK {
		return Stat{}, code
	}
	if version != AnyVersion && version != n.readRare().aversion {
		return Stat{}, ErrBadVersion
	}
	return t.replaceACL(x, n, list).stat(), OK
}

// Check passes when the znode exists, may be read, and has the version.
//
// Errors: ErrBadArguments (path), ErrNoNode, ErrNoAuth (READ), ErrBadVersion.
func (t *Tree) Check(x *Txn, path string, version Version) Error {
	n, code := t.checked(x, path, PermRead)
	if code == OK && version != AnyVersion && version != n.version {
		return ErrBadVersion
	}
	return code
}

// SetConfig replaces the text of /zookeeper/config, which no client may write.
// Its data version is always -1 (Programmer's Guide, "Dynamic
// Reconfiguration").
func (t *Tree) SetConfig(x *Txn, text []byte) {
	n := t.replaceData(x, t.get(ConfigPath), text)
	n.version = -1
}

// Allows reports whether the transaction's client has one of the wanted permissions on a znode. Calls with the same
// Txn evaluate each long ACL once.
//
// Errors: ErrNoNode, ErrNoAuth.
func (t *Tree) Allows(x *Txn, path string, want Perms) Error {
	n := t.get(path)
	switch {
	case n == nil:
		return ErrNoNode
	case !t.permits(x, n.acl, want):
		return ErrNoAuth
	}
	return OK
}

// checked validates path and finds its znode.
func (t *Tree) checked(x *Txn, path string, want Perms) (*node, Error) {
	if ValidatePath(path) != nil {
		return nil, ErrBadArguments
	}
	n := t.get(path)
	switch {
	case n == nil:
		return nil, ErrNoNode
	case !t.permits(x, n.acl, want):
		return nil, ErrNoAuth
	}
	return n, OK
}

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
