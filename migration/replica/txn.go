package replica

import (
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/znode"
)

// Op is the type of a transaction (ZooDefs.OpCode). The numbers are those of requests where there is one.
type Op int32

// The types.
const (
	OpCreate          Op = 1
	OpDelete          Op = 2
	OpSetData         Op = 5
	OpSetACL          Op = 7
	OpCheck           Op = 13 // only inside OpMulti
	OpMulti           Op = 14
	OpCreate2         Op = 15
	OpReconfig        Op = 16 // sets the data of /zookeeper/config
	OpCreateContainer Op = 19
	OpDeleteContainer Op = 20
	OpCreateTTL       Op = 21
	OpCreateSession   Op = -10
	OpCloseSession    Op = -11
	OpError           Op = -1 // a request that failed, which has a zxid all the same
)

var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpSetData: "setData", OpSetACL: "setACL", OpCheck: "check",
	OpMulti: "multi", OpCreate2: "create2", OpReconfig: "reconfig", OpCreateContainer: "createContainer",
	OpDeleteContainer: "deleteContainer", OpCreateTTL: "createTTL", OpCreateSession: "createSession",
	OpCloseSession: "closeSession", OpError: "error",
}

// String is ZooKeeper's name of the type.
func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return fmt.Sprintf("type %d", int32(o))
}

// Txn is one transaction: its header, its change, and the digest of the tree after it.
type Txn struct {
	Session znode.SessionID // of the client; of OpCreateSession the new one
	Cxid    int32           // the client's number of the request
	Zxid    znode.Zxid
	Time    int64 // milliseconds since the epoch
	Change
	Digest    uint64 // if HasDigest (ZooKeeper 3.6)
	HasDigest bool
}

// Change is what a transaction, or an operation of a multi, does. Op determines which fields are used.
type Change struct {
	Op        Op
	Path      string
	Data      []byte // nil for null
	ACL       []znode.ACL
	Ephemeral bool          // OpCreate, OpCreate2
	Creates   int32         // of the parent, after a create; -1: one more
	TTL       int64         // milliseconds; OpCreateTTL
	Version   znode.Version // of the data or the ACL afterwards; of OpCheck the expected one
	Code      znode.Error   // OpError
	Timeout   int32         // milliseconds; OpCreateSession
	Closed    []string      // OpCloseSession: the session's ephemerals; nil before ZooKeeper 3.6
	Multi     []Change
}

// digestVersion is that of ZooKeeper's DigestCalculator; digests of other versions are ignored.
const (
	digestVersion = 2
	digestBytes   = 4 + 8
)

// ErrUnknownOp reports a transaction of a type that this build does not know.
var ErrUnknownOp = errors.New("unknown type of transaction")

// ParseTxn decodes a transaction: TxnHeader, the record of its type and, if bytes remain, TxnDigest (ZooKeeper's
// SerializeUtils.deserializeTxn). The transaction keeps b.
//
// Errors: of jute, or ErrUnknownOp.
func ParseTxn(b []byte) (*Txn, error) {
	r := jute.NewReader(b)
	t := &Txn{
		Session: znode.SessionID(r.Int64()), Cxid: r.Int32(), Zxid: znode.Zxid(r.Int64()), Time: r.Int64(),
	}
	t.Op = Op(r.Int32())
	if t.Op == OpCloseSession {
		t.parseClose(r)
	} else {
		t.parse(r)
	}
	switch left := r.Remaining(); {
	case left >= digestBytes:
		version := r.Int32()
		t.Digest, t.HasDigest = uint64(r.Int64()), version == digestVersion
	case left > 0:
		r.Fail(r.Offset(), t.Op.String(), fmt.Errorf("%d bytes after the record", left))
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("transaction %v, %v: %w", t.Zxid, t.Op, err)
	}
	return t, nil
}

// parseClose parses the record of OpCloseSession, which servers before 3.6 do not write, nor those with
// closeSessionTxn.enabled=false, although a digest may follow.
func (t *Txn) parseClose(r *jute.Reader) {
	rest := r.Rest()
	try := jute.NewReader(rest)
	paths := try.Ustrings()
	if left := try.Remaining(); try.Err() == nil && try.Offset() > 0 && (left == 0 || left == digestBytes) {
		t.Closed = paths
		r.Take(try.Offset(), "closeSession")
	}
}

// parse decodes the record of c's type.
func (c *Change) parse(r *jute.Reader) {
	switch c.Op {
	case OpCreate, OpCreate2:
		c.Path, c.Data, c.ACL, c.Ephemeral = r.Ustring(), r.Buffer(), readACL(r), r.Bool()
		c.Creates = -1
		if r.Remaining() >= 4 && r.Remaining() != digestBytes { // ZooKeeper before 3.4 does not write it
			c.Creates = r.Int32()
		}
	case OpCreateContainer:
		c.Path, c.Data, c.ACL, c.Creates = r.Ustring(), r.Buffer(), readACL(r), r.Int32()
	case OpCreateTTL:
		c.Path, c.Data, c.ACL, c.Creates, c.TTL = r.Ustring(), r.Buffer(), readACL(r), r.Int32(), r.Int64()
	case OpDelete, OpDeleteContainer:
		c.Path = r.Ustring()
	case OpSetData, OpReconfig:
		c.Path, c.Data, c.Version = r.Ustring(), r.Buffer(), znode.Version(r.Int32())
	case OpSetACL:
		c.Path, c.ACL, c.Version = r.Ustring(), readACL(r), znode.Version(r.Int32())
	case OpCheck:
		c.Path, c.Version = r.Ustring(), znode.Version(r.Int32())
	case OpError:
		c.Code = znode.Error(r.Int32())
	case OpCreateSession:
		c.Timeout = r.Int32()
	case OpMulti:
		for n := r.VectorLen(8); n > 0 && r.Err() == nil; n-- {
			at := r.Offset()
			part := Change{Op: Op(r.Int32())}
			if part.Op == OpMulti || part.Op == OpCreateSession || part.Op == OpCloseSession {
				r.Fail(at, "multi", fmt.Errorf("%v inside", part.Op))
				return
			}
			in := jute.NewReader(r.Buffer())
			part.parse(in)
			if err := in.Err(); err != nil {
				r.Fail(at, part.Op.String(), err)
			}
			c.Multi = append(c.Multi, part)
		}
	default:
		r.Fail(r.Offset(), "record", fmt.Errorf("%w: %d", ErrUnknownOp, int32(c.Op)))
	}
}

// Creates reports whether the change is a create.
func (o Op) Creates() bool {
	return o == OpCreate || o == OpCreate2 || o == OpCreateContainer || o == OpCreateTTL
}

// Failed reports whether a multi was refused: its operations are then those of OpError.
func (c *Change) Failed() bool {
	for i := range c.Multi {
		if c.Multi[i].Op == OpError {
			return true
		}
	}
	return false
}

// aclBytes is the size of the smallest entry of an ACL.
const aclBytes = 4 + 4 + 4

func readACL(r *jute.Reader) []znode.ACL {
	n := r.VectorLen(aclBytes)
	if n <= 0 {
		return nil
	}
	list := make([]znode.ACL, n)
	for i := range list {
		list[i] = znode.ACL{Perms: znode.Perms(r.Int32()), ID: znode.ID{Scheme: r.Ustring(), ID: r.Ustring()}}
	}
	return list
}
