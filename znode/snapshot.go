package znode

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Snapshot is the tree at one moment. One other goroutine may read it while the
// writer continues; Release it when done.
//
// Taking it costs a few microseconds: it shares the index's slots, which the
// writer copies shard by shard when it next touches them, and the znodes,
// which the writer replaces instead of editing them (Tree.own).
type Snapshot struct {
	tree  *Tree
	slots [indexShards][]*node
	acls  []aclEntry
	count int
}

// Snapshot freezes the current state of the tree. The writer may call it, and between writes one reader at a time.
func (t *Tree) Snapshot() *Snapshot {
	s := &Snapshot{tree: t, count: t.index.count, acls: append([]aclEntry(nil), t.acls.lists...)}
	for i := range t.index.shards {
		s.slots[i] = t.index.shards[i].slots
		t.index.shards[i].shared = true
	}
	t.gen++
	t.snapshots.Add(1)
	return s
}

// Release lets the writer edit in place again.
func (s *Snapshot) Release() {
	s.tree.snapshots.Add(-1)
	s.tree, s.acls = nil, nil
	s.slots = [indexShards][]*node{}
}

// Len is the number of znodes.
func (s *Snapshot) Len() int { return s.count }

// Record is a znode as a snapshot stores it. Stat's DataLength and NumChildren
// follow from the rest; Cversion is the number of children ever created, and
// EphemeralOwner the session, or the marker of a container or TTL znode.
type Record struct {
	Path string
	Data []byte // nil for null
	Stat Stat
	ACL  []ACL
}

// Walk calls visit for every znode, in no particular order, until it returns an
// error. Path and Data stay valid forever, the Record only during the call.
func (s *Snapshot) Walk(visit func(*Record) error) error {
	var r Record
	for i := range s.slots {
		for _, n := range s.slots[i] {
			if n == nil {
				continue
			}
			r = n.record(s.acls)
			if err := visit(&r); err != nil {
				return err
			}
		}
	}
	return nil
}

// record is n as a snapshot stores it.
func (n *node) record(acls []aclEntry) Record {
	rare := n.readRare()
	return Record{Path: n.path(), Data: n.data(), ACL: acls[n.acl].list, Stat: Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: rare.pzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: Version(rare.creates), Aversion: rare.aversion,
		EphemeralOwner: rare.owner,
	}}
}

// Digest is a number that two trees share when they hold the same znodes: the
// sum of a hash of every Record. Being a sum, it does not depend on order.
func (s *Snapshot) Digest() uint64 {
	var d Digest
	_ = s.Walk(func(r *Record) error { d.Add(r); return nil })
	return d.Sum
}

// Digest adds up what Snapshot.Digest returns of a tree with the added Records.
type Digest struct {
	Sum uint64
	b   []byte
}

// Add counts one znode.
func (d *Digest) Add(r *Record) {
	b := appendText(d.b[:0], r.Path)
	b = binary.AppendVarint(b, int64(len(r.Data)))
	if r.Data == nil {
		b = append(b, 1)
	}
	b = append(b, r.Data...)
	for _, v := range [...]int64{
		int64(r.Stat.Czxid), int64(r.Stat.Mzxid), int64(r.Stat.Pzxid), r.Stat.Ctime, r.Stat.Mtime,
		int64(r.Stat.Version), int64(r.Stat.Cversion), int64(r.Stat.Aversion), int64(r.Stat.EphemeralOwner),
	} {
		b = binary.AppendVarint(b, v)
	}
	for _, a := range r.ACL {
		b = binary.AppendVarint(b, int64(a.Perms))
		b = appendText(appendText(b, a.ID.Scheme), a.ID.ID)
	}
	d.Sum += xxhash.Sum64(b)
	d.b = b
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendVarint(b, int64(len(s)))
	return append(b, s...)
}
