package znode

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
