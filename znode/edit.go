package znode

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// CreateKind is one of ZooKeeper's create operations: the operation, not the
// mode, decides whether the znode is a container or has a TTL.
type CreateKind uint8

// The operations.
const (
	CreatePlain     CreateKind = iota // create, create2
	CreateContainer                   // createContainer
	CreateTTL                         // createTTL
)

// CreateRequest asks for a znode.
type CreateRequest struct {
	Kind CreateKind
	Path string
	Data []byte // nil stores null
	ACL  []ACL
	Mode Mode
	TTL  int64 // milliseconds; for CreateTTL
}

// Mode is the kind of znode that a create asks for; the numbers are those of
// ZooKeeper's CreateMode flags.
type Mode int32

// The seven kinds.
const (
	Persistent              Mode = 0
	Ephemeral               Mode = 1 // deleted when its session ends
	PersistentSequential    Mode = 2 // a 10-digit counter is appended to the name
	EphemeralSequential     Mode = 3
	Container               Mode = 4 // deleted some time after its last child
	PersistentTTL           Mode = 5 // deleted when childless and unchanged for its TTL
	PersistentSequentialTTL Mode = 6
)

// Valid reports whether m is one of the seven kinds.
func (m Mode) Valid() bool { return m >= Persistent && m <= PersistentSequentialTTL }

// Sequential reports whether the server appends a number to the name.
func (m Mode) Sequential() bool {
	return m == PersistentSequential || m == EphemeralSequential || m == PersistentSequentialTTL
}

// Ephemeral reports whether the znode belongs to a session.
func (m Mode) Ephemeral() bool { return m == Ephemeral || m == EphemeralSequential }

// TTL reports whether the znode has a time to live.
func (m Mode) TTL() bool { return m == PersistentTTL || m == PersistentSequentialTTL }

// Create adds a znode and returns its path, with the sequence number, and its
// Stat. The order of the checks is that of ZooKeeper's PrepRequestProcessor.
//
// Errors: ErrBadArguments (mode, TTL, path), ErrUnimplemented (TTL while
// extended types are off), ErrInvalidACL, ErrNoNode (parent), ErrNoAuth
// (CREATE on the parent), ErrNodeExists, ErrNoChildrenForEphemeral,
// ErrQuotaExceeded, ErrSystem (the parent has no sequence number left).
func (t *Tree) Create(x *Txn, r *CreateRequest) (string, Stat, Error) {
	if code := checkMode(x, r); code != OK {
		return "", Stat{}, code
	}
	slash := strings.LastIndexByte(r.Path, '/')
	if slash < 0 || strings.IndexByte(r.Path, 0) >= 0 {
		return "", Stat{}, ErrBadArguments
	}
	acl, code := fixACL(r.ACL, x.Identities, x.FirstRules)
	if code != OK {
		return "", Stat{}, code
	}
	parent := t.get(r.Path[:slash])
	if parent == nil {
		return "", Stat{}, ErrNoNode
	}
	if !t.permits(x, parent.acl, PermCreate) {
		return "", Stat{}, ErrNoAuth
	}
	path := r.Path
	if r.Mode.Sequential() {
		next := parent.readRare().creates
		if next == math.MaxInt32 && !x.FirstRules {
			return "", Stat{}, ErrSystem // the counter does not wrap: every later znode would get this number
		}
		path += FormatSequence(next)
	}
	switch {
	case ValidatePath(path) != nil:
		return "", Stat{}, ErrBadArguments
	case t.get(path) != nil:
		return "", Stat{}, ErrNodeExists
	case parent.isEphemeral():
		return "", Stat{}, ErrNoChildrenForEphemeral
	}
	if code := t.checkQuota(x, path, int64(len(r.Data)), 1); code != OK {
		return "", Stat{}, code
	}
	n := &node{
		czxid: x.Zxid, mzxid: x.Zxid,
		ctime: x.TimeMillis, mtime: x.TimeMillis,
		acl: t.acls.ref(acl),
	}
	if owner := r.owner(x.Session); owner != 0 {
		n.editRare().owner = owner
	}
	n.setBlob(path, r.Data)
	t.insert(x, parent, n)
	t.chargeQuota(x, path, int64(len(r.Data)), 1)
	return n.path(), n.stat(), OK
}

func checkMode(x *Txn, r *CreateRequest) Error {
	if !r.Mode.Valid() {
		return ErrBadArguments
	}
	// Plain creates carry no TTL, so a TTL mode is wrong for them, but the
	// missing feature is reported first (validateCreateRequest).
	if r.Mode.TTL() && !x.ExtendedTypes {
		return ErrUnimplemented
	}
	if r.Mode.TTL() != (r.Kind == CreateTTL) {
		return ErrBadArguments
	}
	if r.Mode.TTL() && (r.TTL <= 0 || r.TTL > ttlMaxMillis) {
		return ErrBadArguments
	}
	return OK
}

// owner returns the value of the znode's owner field for r.
func (r *CreateRequest) owner(s SessionID) SessionID {
	switch {
	case r.Kind == CreateContainer:
		return containerOwner
	case r.Kind == CreateTTL:
		return ttlOwner(r.TTL)
	case r.Mode.Ephemeral():
		return s
	}
	return 0
}

// FormatSequence returns the suffix that a server appends to the name of a sequential
// znode: the parent's counter, a signed 32-bit number, in Java's format %010d. In
// ZooKeeper it can be negative, and is then one character longer.
func FormatSequence(n int32) string { return fmt.Sprintf("%010d", n) }

// ParseSequence is the inverse of FormatSequence. ok is false for text that no server
// writes, such as -000000000.
func ParseSequence(s string) (n int32, ok bool) {
	if len(s) != 10 && len(s) != 11 {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 32)
	return int32(v), err == nil && s == FormatSequence(int32(v))
}

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
	list, code := fixACL(acl, x.Identities, x.FirstRules)
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
