package znode

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
	fixed, code := fixACL(list, ids)
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
