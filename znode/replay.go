package znode

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// Replay makes the changes of transactions that a ZooKeeper ensemble has committed, and keeps the digest that its
// servers compute of their trees. It decides nothing and checks no permission, because the ensemble's leader has.
//
// Its rules are those of ZooKeeper's DataTree.processTxn, and converge over a snapshot that was written while
// transactions were applied ("fuzzy"): what the snapshot has already is not done twice. Like every edit, it is for the
// tree's single writer.
type Replay struct {
	tree *Tree
	// digests are the digests of ZooKeeper servers whose paths are bytes of UTF-8, and of those whose Java replaces
	// each character outside ASCII by a question mark (its default charset under LC_ALL=C).
	digests ZooKeeperDigest
}

// NewReplay returns a Replay on a tree, whose digest it computes.
func NewReplay(t *Tree) *Replay {
	r := &Replay{tree: t}
	for i := range t.index.shards {
		for _, n := range t.index.shards[i].slots {
			if n != nil {
				r.count(n, 1)
			}
		}
	}
	return r
}

// DigestIs reports whether a ZooKeeper server's digest is that of the tree.
func (r *Replay) DigestIs(d uint64) bool { return r.digests.Is(d) }

// Digest is the tree's digest (ZooKeeper's DigestCalculator, version 2): the sum of a checksum of each znode, except
// those below /zookeeper.
func (r *Replay) Digest() uint64 { return r.digests[0] }

// count adds a znode's checksum to the digests, sign times.
func (r *Replay) count(n *node, sign int64) {
	rare := n.readRare()
	utf8, ascii := zooKeeperSums(&Record{Path: n.path(), Data: n.data(), Stat: Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: rare.pzxid, Ctime: n.ctime, Mtime: n.mtime, Version: n.version,
		Cversion: Version(rare.creates), Aversion: rare.aversion, EphemeralOwner: rare.owner,
	}})
	r.digests[0] += uint64(sign) * utf8
	r.digests[1] += uint64(sign) * ascii
}

// ZooKeeperDigest adds up what Replay.Digest returns of a tree with the added Records.
type ZooKeeperDigest [2]uint64

// Add counts one znode.
func (d *ZooKeeperDigest) Add(r *Record) {
	utf8, ascii := zooKeeperSums(r)
	d[0] += utf8
	d[1] += ascii
}

// Is reports whether a ZooKeeper server's digest is that of the Records.
func (d *ZooKeeperDigest) Is(sum uint64) bool { return sum == d[0] || sum == d[1] }

// zooKeeperSums returns what a znode adds to both digests of a Replay.
func zooKeeperSums(r *Record) (utf8, ascii uint64) {
	path := r.Path
	if strings.HasPrefix(path, SystemPath+"/") {
		return 0, 0
	}
	if path == RootPath {
		path = ""
	}
	var b [60]byte
	put, s := binary.BigEndian, &r.Stat
	for i, v := range [...]int64{int64(s.Czxid), int64(s.Mzxid), int64(s.Pzxid), s.Ctime, s.Mtime} {
		put.PutUint64(b[8*i:], uint64(v))
	}
	put.PutUint32(b[40:], uint32(s.Version))
	put.PutUint32(b[44:], uint32(s.Cversion))
	put.PutUint32(b[48:], uint32(s.Aversion))
	put.PutUint64(b[52:], uint64(s.EphemeralOwner))
	sum := func(path string) uint64 {
		crc := crc32.ChecksumIEEE([]byte(path))
		crc = crc32.Update(crc, crc32.IEEETable, r.Data)
		return uint64(crc32.Update(crc, crc32.IEEETable, b[:]))
	}
	utf8 = sum(path)
	if plain := inASCII(path); plain != path {
		return utf8, sum(plain)
	}
	return utf8, utf8
}

// inASCII replaces every character that a Java charset of ASCII cannot encode.
func inASCII(path string) string {
	for i := range len(path) {
		if path[i] >= 0x80 {
			return strings.Map(func(c rune) rune {
				if c >= 0x80 {
					return '?'
				}
				return c
			}, path)
		}
	}
	return path
}

// change makes an edit of n's Stat or data, and keeps the digest.
func (r *Replay) change(n *node, edit func(n *node)) {
	r.count(n, -1)
	n = r.tree.own(n)
	edit(n)
	r.count(n, 1)
}

// Create adds a znode as a request asks for it, but for the name of a sequential one, which is complete; the session of
// x owns an ephemeral. creates is the parent's number of children ever created afterwards, -1 to count one more.
//
// Errors, after which nothing has changed: ErrBadArguments (path, TTL), ErrInvalidACL, ErrNoNode (parent); and
// ErrNodeExists, after which the znode has the ACL and the parent the counter.
func (r *Replay) Create(x *Txn, c *CreateRequest, creates int32) Error {
	t := r.tree
	switch {
	case ValidatePath(c.Path) != nil || c.Path == RootPath:
		return ErrBadArguments
	case c.Kind == CreateTTL && (c.TTL <= 0 || c.TTL > ttlMaxMillis):
		return ErrBadArguments
	case len(c.ACL) == 0:
		return ErrInvalidACL
	}
	parent := t.parentOf(c.Path)
	if parent == nil {
		return ErrNoNode
	}
	parent = t.own(parent) // link gives it a set of children
	now := parent.readRare().creates
	if creates == -1 {
		creates = now + 1
	}
	if creates > now { // a fuzzy snapshot's may be ahead
		r.change(parent, func(n *node) { n.editRare().creates, n.rare.pzxid = creates, x.Zxid })
	}
	if have := t.get(c.Path); have != nil {
		r.setACL(have, c.ACL, have.readRare().aversion)
		return ErrNodeExists
	}
	n := &node{czxid: x.Zxid, mzxid: x.Zxid, ctime: x.TimeMillis, mtime: x.TimeMillis, acl: t.acls.ref(c.ACL)}
	if owner := c.owner(x.Session); owner != 0 {
		n.editRare().owner = owner
	}
	n.setBlob(c.Path, c.Data)
	t.link(n)
	r.count(n, 1)
	x.emit(t, EventCreated, n, parent)
	t.chargeQuota(x, c.Path, int64(len(c.Data)), 1)
	return OK
}

// SetData replaces a znode's data, which then has this version.
//
// Errors: ErrNoNode.
func (r *Replay) SetData(x *Txn, path string, data []byte, version Version) Error {
	t := r.tree
	n := t.get(path)
	if n == nil {
		return ErrNoNode
	}
	diff := int64(len(data)) - int64(n.size())
	r.change(n, func(n *node) {
		t.putData(n, data)
		n.version, n.mzxid, n.mtime = version, x.Zxid, x.TimeMillis
		x.emit(t, EventDataChanged, n, nil)
	})
	t.chargeQuota(x, path, diff, 0)
	return OK
}

// SetACL replaces a znode's ACL, which then has this version.
//
// Errors: ErrInvalidACL, ErrNoNode.
func (r *Replay) SetACL(path string, acl []ACL, version Version) Error {
	n := r.tree.get(path)
	switch {
	case len(acl) == 0:
		return ErrInvalidACL
	case n == nil:
		return ErrNoNode
	}
	r.setACL(n, acl, version)
	return OK
}

func (r *Replay) setACL(n *node, acl []ACL, version Version) {
	r.change(n, func(n *node) {
		old := n.acl
		n.acl = r.tree.acls.ref(acl)
		r.tree.acls.drop(old)
		if n.readRare().aversion != version {
			n.editRare().aversion = version
		}
	})
}

// Delete removes a znode.
//
// Errors: ErrBadArguments (path), ErrNoNode (also of the parent, which otherwise has the transaction as its last one),
// ErrNotEmpty, after which nothing has changed.
func (r *Replay) Delete(x *Txn, path string) Error {
	t := r.tree
	if ValidatePath(path) != nil || isSystem(path) {
		return ErrBadArguments
	}
	parent, n := t.parentOf(path), t.get(path)
	switch {
	case parent == nil:
		return ErrNoNode
	case n != nil && n.numChildren() > 0:
		return ErrNotEmpty
	}
	if x.Zxid > parent.readRare().pzxid { // a fuzzy snapshot's may be ahead
		r.change(parent, func(n *node) { n.editRare().pzxid = x.Zxid })
	}
	if n == nil {
		return ErrNoNode
	}
	size := int64(n.size())
	r.count(n, -1)
	x.emit(t, EventDeleted, n, parent)
	t.unlink(n)
	t.acls.drop(n.acl)
	t.chargeQuota(x, path, -size, -1)
	return OK
}

// Recount writes the usage of every quota, which ZooKeeper's servers count each for itself.
func (r *Replay) Recount(x *Txn) {
	for subject := range r.tree.quotas {
		path := quotaStatsPath(subject)
		if r.tree.get(path) != nil {
			r.tree.writeQuota(x, path, quotaText{"count": 0, "bytes": 0}, r.tree.subtreeSize(subject))
		}
	}
}
