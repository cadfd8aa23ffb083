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
