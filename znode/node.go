package znode

import (
	"math"
	"unsafe"
)

// node is one znode as the tree holds it. A million of them are held at once,
// so the layout is packed into the allocator's 96-byte class and the path and
// the data share one allocation.
//
// A node is written only by the tree's single writer, and only while
// node.gen == tree.gen or no snapshot is being read: otherwise it is replaced
// by a copy first (Tree.own). The blob is never written after it was made, so
// slices of it may be kept for ever.
type node struct {
	blob     *byte // path, then data
	pathLen  uint32
	dataLen  int32 // nullData when the client stored null
	czxid    Zxid
	mzxid    Zxid
	pzxid    Zxid
	ctime    int64
	mtime    int64
	owner    SessionID // session, or a marker: containerOwner, ttlOwner
	version  Version
	creates  int32 // children ever created; the next sequence number
	aversion Version
	acl      aclID
	children *children // nil until the first child
	slot     uint32    // place in the parent's list of children
	gen      uint32    // tree.gen when this copy was made
}

// children is the set of a znode's children, in a stable order. It is not part
// of a snapshot (paths say the same), so all copies of a node share one.
type children struct {
	list []*node // invariant: list[i].slot == i
}

// nullData in dataLen tells null from empty (Kafka registers with null).
const nullData = -1

// Markers in owner, as ZooKeeper's EphemeralType stores them: a container is
// the smallest number, a TTL znode has 0xFF in the top byte and the TTL in
// milliseconds in the low 40 bits. No session id looks like either.
const (
	containerOwner SessionID = math.MinInt64
	ttlMarker      uint64    = 0xFF << 56
	ttlMaxMillis   int64     = 1<<40 - 1
)

func ttlOwner(millis int64) SessionID { return SessionID(ttlMarker | uint64(millis)) }

func (n *node) path() string { return unsafe.String(n.blob, n.pathLen) }

// data is nil for null and not nil for empty data.
func (n *node) data() []byte {
	if n.dataLen < 0 {
		return nil
	}
	if n.dataLen == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(n.blob), n.pathLen)), n.dataLen)
}

// size is the number of data bytes.
func (n *node) size() int { return max(0, int(n.dataLen)) }

// setBlob gives n a new blob; path may be n's own.
func (n *node) setBlob(path string, data []byte) {
	b := make([]byte, len(path)+len(data))
	copy(b, path)
	copy(b[len(path):], data)
	n.blob, n.pathLen, n.dataLen = unsafe.SliceData(b), uint32(len(path)), int32(len(data))
	if data == nil {
		n.dataLen = nullData
	}
}

func (n *node) numChildren() int {
	if n.children == nil {
		return 0
	}
	return len(n.children.list)
}

func (n *node) isContainer() bool { return n.owner == containerOwner }

func (n *node) isTTL() bool { return uint64(n.owner)>>56 == 0xFF }

func (n *node) isEphemeral() bool { return n.owner != 0 && !n.isContainer() && !n.isTTL() }

func (n *node) ttlMillis() int64 { return int64(n.owner) & ttlMaxMillis }

// stat is what clients see. cversion counts creates and deletes; since
// deletes = creates - children, it need not be stored (DataNode.copyStat).
func (n *node) stat() Stat {
	s := Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion,
		Cversion:    Version(2*n.creates - int32(n.numChildren())),
		DataLength:  int32(n.size()),
		NumChildren: int32(n.numChildren()),
	}
	if n.isEphemeral() {
		s.EphemeralOwner = n.owner
	}
	return s
}
