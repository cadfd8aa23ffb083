package znode

import (
	"fmt"
	"math"
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
	acl, code := fixACL(r.ACL, x.Identities)
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
