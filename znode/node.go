package znode

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// node is one znode of the tree. A tree can have millions, so a node is packed
// into the allocator's 64-byte class, path and data share one allocation, and
// what few znodes need is in rare.
//
// A node is written only by the tree's single writer, and only while node.gen
// == tree.gen or no snapshot is being read: otherwise it is replaced by a copy
// first (Tree.own). The blob is immutable, so slices of it may be kept forever.
type node struct {
	blob    *byte // path and data; see setBlob
	rare    *rare // nil until something differs from a new znode
	czxid   Zxid
	mzxid   Zxid
	ctime   int64
	mtime   int64
	version Version
	acl     aclID
	slot    uint32 // place in the parent's list of children
	gen     uint32 // tree.gen when this copy was made
}

// rare is the state that only some znodes need: ephemerals, containers, znodes
// with a TTL, and those that ever had a child or another ACL. Like a node's own
// fields it belongs to one copy of the node.
type rare struct {
	pzxid    Zxid
	owner    SessionID // session, or a marker: containerOwner, ttlOwner
	creates  int32     // children ever created; the next sequence number
	aversion Version
	children *children // nil until the first child
}

// children is the set of a znode's children, in a stable order. It is not part
// of a snapshot (the paths imply it), so all copies of a node share one.
type children struct {
	list  []*node   // invariant: list[i].slot == i
	names int       // bytes of their names
	up    *children // the set that the znode itself is in; nil for the root's
	below int       // znodes at any depth
	bytes int64     // their data
}

// append adds n to the list.
func (c *children) append(n *node) {
	n.slot = uint32(len(c.list))
	c.list = append(c.list, n)
	c.names += len(Base(n.path()))
}

// add counts znodes and bytes of data, in c and all above it. Counting them for each query would take time
// proportional to the znodes, while all other clients wait.
func (c *children) add(znodes int, bytes int64) {
	for ; c != nil; c = c.up {
		c.below += znodes
		c.bytes += bytes
	}
}

// editRare returns n's rare part to write to, and makes one if there is none.
func (n *node) editRare() *rare {
	if n.rare == nil {
		n.rare = &rare{pzxid: n.czxid}
	}
	return n.rare
}

// readRare returns n's rare part to read.
func (n *node) readRare() rare {
	if n.rare == nil {
		return rare{pzxid: n.czxid}
	}
	return *n.rare
}

// copy returns a node that shares with n its immutable parts and the children.
func (n *node) copy() node {
	c := *n
	if n.rare != nil {
		r := *n.rare
		c.rare = &r
	}
	return c
}

// Markers in owner, as ZooKeeper's EphemeralType stores them: a container is
// the smallest number, a TTL znode has 0xFF in the top byte and the TTL in
// milliseconds in the low 40 bits. No session id looks like either.
const (
	containerOwner SessionID = math.MinInt64
	ttlMarker      uint64    = 0xFF << 56
	ttlMaxMillis   int64     = 1<<40 - 1
)

func ttlOwner(millis int64) SessionID { return SessionID(ttlMarker | uint64(millis)) }

// setBlob gives n a new blob: the length of the path and the path, one more than
// the length of the data, 0 for null (Kafka registers with null), and the data.
// The lengths are varints. path may be n's own.
func (n *node) setBlob(path string, data []byte) {
	var lengths [2 * binary.MaxVarintLen64]byte
	head := binary.PutUvarint(lengths[:], uint64(len(path)))
	size := 0
	if data != nil {
		size = len(data) + 1
	}
	middle := head + binary.PutUvarint(lengths[head:], uint64(size))
	b := make([]byte, middle+len(path)+len(data))
	at := copy(b, lengths[:head])
	at += copy(b[at:], path)
	at += copy(b[at:], lengths[head:middle])
	copy(b[at:], data)
	n.blob = unsafe.SliceData(b)
}

func (n *node) path() string {
	size, at := n.length(0)
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(n.blob), at)), size)
}

// data is nil for null and not nil for empty data.
func (n *node) data() []byte {
	size, at := n.end()
	switch size {
	case 0:
		return nil
	case 1:
		return []byte{} // there may be nothing after the length to point to
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(n.blob), at)), size-1)
}

// size is the number of data bytes.
func (n *node) size() int {
	size, _ := n.end()
	return max(0, size-1)
}

// end reads the second half of the blob: one more than the data's length, 0 for
// null, and the position of the data in the blob.
func (n *node) end() (size, at int) {
	size, at = n.length(0)
	return n.length(at + size)
}

// length reads the varint at a position in the blob, and returns the position
// after it.
func (n *node) length(at int) (size, next int) {
	for shift := 0; ; shift += 7 {
		b := *(*byte)(unsafe.Add(unsafe.Pointer(n.blob), at))
		size |= int(b&0x7f) << shift
		at++
		if b < 0x80 {
			return size, at
		}
	}
}

func (n *node) numChildren() int { return len(n.childList()) }

func (n *node) childList() []*node {
	if n.rare == nil || n.rare.children == nil {
		return nil
	}
	return n.rare.children.list
}

// below is the number of znodes below n, and the bytes of their data.
func (n *node) below() (znodes int, bytes int64) {
	if n.rare == nil || n.rare.children == nil {
		return 0, 0
	}
	return n.rare.children.below, n.rare.children.bytes
}

// owner is a session, a marker, or 0.
func (n *node) owner() SessionID {
	if n.rare == nil {
		return 0
	}
	return n.rare.owner
}

func (n *node) isContainer() bool { return n.owner() == containerOwner }

func (n *node) isTTL() bool { return uint64(n.owner())>>56 == 0xFF }

func (n *node) isEphemeral() bool { return n.owner() != 0 && !n.isContainer() && !n.isTTL() }

// mode is how long the znode lives.
func (n *node) mode() Mode {
	switch {
	case n.owner() == 0:
		return Persistent
	case n.isContainer():
		return Container
	case n.isTTL():
		return PersistentTTL
	}
	return Ephemeral
}

func (n *node) ttlMillis() int64 { return int64(n.owner()) & ttlMaxMillis }

// stat is the Stat that clients see. cversion counts creates and deletes; since
// deletes = creates - children, it need not be stored (DataNode.copyStat).
func (n *node) stat() Stat { return n.statWith(int32(n.numChildren())) }

// statWith is the Stat of a znode with so many children.
func (n *node) statWith(children int32) Stat {
	r := n.readRare()
	s := Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: r.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: r.aversion,
		Cversion:    Version(2*r.creates - children),
		DataLength:  int32(n.size()),
		NumChildren: children,
	}
	if n.isEphemeral() {
		s.EphemeralOwner = r.owner
	}
	return s
}

// The memory of the parts of a tree, in bytes: measured by TestTree_Memory, and rounded up.
const (
	nodeMemory = 128 // a node, its slots in the index and in its parent's list, a part of its parent's rare record
	sideMemory = 112 // a rare record, and an entry of ephemerals, containers or ttls without its path
	listMemory = 160 // an entry of the table of ACLs
	aclMemory  = 96  // an ACL in it, without its texts
)

// Memory estimates how much of the heap the tree takes, in bytes. The same znodes give the same
// number.
func (t *Tree) Memory() int64 {
	return int64(t.index.count)*nodeMemory + DataMemory(t.dataBytes) + t.sideBytes + t.acls.bytes
}

// CreateMemory estimates how much a znode with this many bytes of data adds to Memory.
func CreateMemory(path string, data int) int64 { return nodeMemory + DataMemory(int64(len(path)+data)) }

// DataMemory is how much paths and data of this many bytes add. The size classes of Go's allocator waste an
// eighth at most.
func DataMemory(bytes int64) int64 { return bytes + bytes/8 }

// ACLMemory is how much a list adds that no znode has yet.
func ACLMemory(list []ACL) int64 {
	m := int64(listMemory)
	for i := range list {
		texts := len(list[i].ID.Scheme) + len(list[i].ID.ID)
		m += aclMemory + 2*int64(texts) // the second time in the key
	}
	return m
}

// ACLGrowth is how much list adds to Memory when a client with these identities gives it to a
// znode.
func (t *Tree) ACLGrowth(list []ACL, ids []ID) int64 {
	fixed, code := fixACL(list, ids, false)
	if code != OK {
		return 0 // it will be refused
	}
	if _, there := t.acls.byKey[aclKey(fixed)]; there {
		return 0
	}
	return ACLMemory(fixed)
}

// memoryOfSide is how much a znode takes in the tables of ephemerals, containers and TTL
// znodes.
func memoryOfSide(n *node) int64 {
	if n.owner() == 0 {
		return 0
	}
	return sideMemory + int64(len(n.path()))
}

// The kinds of znodes, as Record.Kind names them.
const (
	KindPersistent = "persistent"
	KindEphemeral  = "ephemeral"
	KindContainer  = "container"
	KindTTL        = "ttl"
)

// Kind returns how long a znode lives, and the TTL in milliseconds of one that has a TTL.
func (r *Record) Kind() (kind string, ttlMillis int64) {
	n := node{rare: &rare{owner: r.Stat.EphemeralOwner}}
	switch {
	case n.owner() == 0:
		return KindPersistent, 0
	case n.isContainer():
		return KindContainer, 0
	case n.isTTL():
		return KindTTL, n.ttlMillis()
	}
	return KindEphemeral, 0
}
