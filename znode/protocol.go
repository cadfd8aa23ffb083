package znode

import "fmt"

// Zxid is a ZooKeeper transaction id: a number that grows with every client
// transaction. The high 32 bits are a Raft term, the low 32 a counter.
type Zxid int64

// NoZxid marks an event that belongs to no single transaction, such as the
// missed events that setWatches reports.
const NoZxid Zxid = -1

// String writes the id as ZooKeeper's tools do, in hexadecimal with 0x.
func (z Zxid) String() string { return fmt.Sprintf("0x%x", uint64(z)) }

// SessionID names a session for its whole life, on every server. Its top byte
// is the id of the server that created it, so it may be negative.
type SessionID int64

// String writes the id as ZooKeeper's tools do, in hexadecimal with 0x.
func (s SessionID) String() string { return fmt.Sprintf("0x%x", uint64(s)) }

// PasswordSize is the length of a session's password. It is fixed, because the
// C client reads a handshake of fixed size.
const PasswordSize = 16

// Version counts the changes of one aspect of a znode: its data (version), its
// children (cversion) or its ACL (aversion).
type Version int32

// AnyVersion as an expected version matches every version.
const AnyVersion Version = -1

// Stat is the metadata of a znode that clients see (ZooKeeper Programmer's
// Guide, "Time in ZooKeeper" and "ZooKeeper Stat Structure"). The field order
// is that of the wire record.
type Stat struct {
	Czxid          Zxid      // transaction that created the znode
	Mzxid          Zxid      // transaction that last changed its data
	Ctime          int64     // milliseconds since the epoch of Czxid
	Mtime          int64     // milliseconds since the epoch of Mzxid
	Version        Version   // changes of the data
	Cversion       Version   // creates plus deletes of children
	Aversion       Version   // changes of the ACL
	EphemeralOwner SessionID // owner of an ephemeral; 0 for every other kind
	DataLength     int32     // bytes of data
	NumChildren    int32     // children at this moment
	Pzxid          Zxid      // transaction that last created or deleted a child
}

// EventType is what happened to a znode. The numbers are the protocol's.
type EventType int32

// The four types that travel from server to client.
const (
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// These change no znode and never travel: the values that the znode had, with EventPurgedBelow also those of all below
// it, must go from records of changes.
const (
	EventPurged      EventType = 100
	EventPurgedBelow EventType = 101
)

// String is ZooKeeper's name of the type.
func (t EventType) String() string {
	switch t {
	case EventCreated:
		return "NodeCreated"
	case EventDeleted:
		return "NodeDeleted"
	case EventDataChanged:
		return "NodeDataChanged"
	case EventChildrenChanged:
		return "NodeChildrenChanged"
	}
	return "None"
}

// WatcherType selects the watches that removeWatches and checkWatches apply to. The
// numbers are the protocol's (Watcher.WatcherType).
type WatcherType int32

// The watcher types.
const (
	WatcherChildren   WatcherType = 1 // the one-shot child watch
	WatcherData       WatcherType = 2 // the one-shot data watch
	WatcherAny        WatcherType = 3 // every watch on the path
	WatcherPersistent WatcherType = 4
	WatcherRecursive  WatcherType = 5
)

// Valid reports whether t is one of the five types.
func (t WatcherType) Valid() bool { return t >= WatcherChildren && t <= WatcherRecursive }

// Event is one edit of the tree: a znode was created, deleted or got new data.
// Creations and deletions imply a change of the parent's children, which has no
// Event of its own.
type Event struct {
	Type EventType
	Path string
	Zxid Zxid
	// ACL is the znode's at the edit and ParentACL its parent's; they decide
	// which clients may learn of it. Both are shared: do not modify.
	ACL       []ACL
	ParentACL []ACL

	// Stat and Data are the znode's after the edit; of a deleted one, its last. Before is its data before
	// EventDataChanged. None of them is ever changed, so they may be kept.
	Stat         Stat
	Data, Before []byte // nil for null
	// Mode says how long it lives: Persistent, Ephemeral, Container or PersistentTTL.
	Mode Mode
	// Txn is the transaction that the edit is a part of. It is valid while the Event is reported.
	Txn *Txn
}

// Error is a result code of the ZooKeeper protocol, and an error itself:
// compare with errors.Is(err, znode.ErrNoNode). The numbers are
// KeeperException.Code's; clients refuse unknown numbers, so none may be added.
type Error int32

// The codes, in the order of the protocol. OK is not an error and must never be
// returned as one: use Err to convert.
const (
	OK                        Error = 0
	ErrSystem                 Error = -1
	ErrRuntimeInconsistency   Error = -2
	ErrDataInconsistency      Error = -3
	ErrConnectionLoss         Error = -4
	ErrMarshalling            Error = -5
	ErrUnimplemented          Error = -6
	ErrOperationTimeout       Error = -7
	ErrBadArguments           Error = -8
	ErrNewConfigNoQuorum      Error = -13
	ErrReconfigInProgress     Error = -14
	ErrAPI                    Error = -100
	ErrNoNode                 Error = -101
	ErrNoAuth                 Error = -102
	ErrBadVersion             Error = -103
	ErrNoChildrenForEphemeral Error = -108
	ErrNodeExists             Error = -110
	ErrNotEmpty               Error = -111
	ErrSessionExpired         Error = -112
	ErrInvalidCallback        Error = -113
	ErrInvalidACL             Error = -114
	ErrAuthFailed             Error = -115
	ErrSessionMoved           Error = -118
	ErrNotReadOnly            Error = -119
	ErrEphemeralOnLocal       Error = -120
	ErrNoWatcher              Error = -121
	ErrRequestTimeout         Error = -122
	ErrReconfigDisabled       Error = -123
	ErrSessionClosedNeedsSASL Error = -124
	ErrQuotaExceeded          Error = -125
	ErrThrottled              Error = -127
)

var errorText = map[Error][2]string{
	OK:                        {"OK", "no error"},
	ErrSystem:                 {"SYSTEMERROR", "system error: a limit of the servers stands in the way"},
	ErrRuntimeInconsistency:   {"RUNTIMEINCONSISTENCY", "not tried: an earlier operation of the multi failed"},
	ErrDataInconsistency:      {"DATAINCONSISTENCY", "data inconsistency"},
	ErrConnectionLoss:         {"CONNECTIONLOSS", "connection lost; whether the operation happened is unknown"},
	ErrMarshalling:            {"MARSHALLINGERROR", "the request could not be decoded"},
	ErrUnimplemented:          {"UNIMPLEMENTED", "operation not supported by this server"},
	ErrOperationTimeout:       {"OPERATIONTIMEOUT", "operation timed out"},
	ErrBadArguments:           {"BADARGUMENTS", "bad arguments"},
	ErrNewConfigNoQuorum:      {"NEWCONFIGNOQUORUM", "no quorum of the new configuration is connected"},
	ErrReconfigInProgress:     {"RECONFIGINPROGRESS", "another reconfiguration is in progress"},
	ErrAPI:                    {"APIERROR", "API error"},
	ErrNoNode:                 {"NONODE", "znode does not exist"},
	ErrNoAuth:                 {"NOAUTH", "not permitted by the ACL"},
	ErrBadVersion:             {"BADVERSION", "version does not match"},
	ErrNoChildrenForEphemeral: {"NOCHILDRENFOREPHEMERALS", "an ephemeral znode cannot have children"},
	ErrNodeExists:             {"NODEEXISTS", "znode already exists"},
	ErrNotEmpty:               {"NOTEMPTY", "znode has children"},
	ErrSessionExpired:         {"SESSIONEXPIRED", "session expired"},
	ErrInvalidCallback:        {"INVALIDCALLBACK", "invalid callback"},
	ErrInvalidACL:             {"INVALIDACL", "invalid ACL"},
	ErrAuthFailed:             {"AUTHFAILED", "authentication failed"},
	ErrSessionMoved:           {"SESSIONMOVED", "session moved to another server"},
	ErrNotReadOnly:            {"NOTREADONLY", "write sent to a read-only server"},
	ErrEphemeralOnLocal:       {"EPHEMERALONLOCALSESSION", "ephemeral znode on a local session"},
	ErrNoWatcher:              {"NOWATCHER", "no such watcher"},
	ErrRequestTimeout:         {"REQUESTTIMEOUT", "request timed out"},
	ErrReconfigDisabled:       {"RECONFIGDISABLED", "reconfig is disabled"},
	ErrSessionClosedNeedsSASL: {"SESSIONCLOSEDREQUIRESASLAUTH", "an identity of enforce.auth.schemes is needed"},
	ErrQuotaExceeded:          {"QUOTAEXCEEDED", "quota exceeded"},
	ErrThrottled:              {"THROTTLEDOP", "operation throttled"},
}

// Name is ZooKeeper's name of the code, such as NONODE.
func (e Error) Name() string {
	if t, ok := errorText[e]; ok {
		return t[0]
	}
	return fmt.Sprintf("UNKNOWN(%d)", int32(e))
}

// Error returns the meaning of the code.
func (e Error) Error() string {
	if t, ok := errorText[e]; ok {
		return t[1]
	}
	return fmt.Sprintf("unknown error code %d", int32(e))
}

// Err is nil for OK and the code itself otherwise.
func (e Error) Err() error {
	if e == OK {
		return nil
	}
	return e
}
