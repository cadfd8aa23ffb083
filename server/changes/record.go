package changes

import (
	"sort"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// capacity is how many changes a server remembers for streams that resume: some
// seconds of the heaviest load, hours of a usual one, and a few megabytes. maxBytes
// bounds their paths and ACLs, which clients choose: fewer are remembered then.
const (
	capacity = 1 << 16
	maxBytes = 32 << 20
)

// record holds the newest changes of the tree, numbered from 0.
type record struct {
	ring    []entry    // grows up to capacity; number n is at n % capacity
	total   uint64     // how many there were
	first   uint64     // number of the oldest
	bytes   int64      // of paths and permissions; one that several in a row share counts once
	floor   znode.Zxid // every change after it is in the ring
	restart uint64     // counts how often the record was started anew
}

// entry is a znode.Event in half its bytes: there are many, and most have the same
// lists as the one before.
type entry struct {
	path string
	zxid znode.Zxid
	may  *permissions
	typ  znode.EventType
}

// permissions are an event's lists.
type permissions struct{ own, parent []znode.ACL }

// add puts the newest change in, perhaps in place of the oldest.
func (r *record) add(e *znode.Event) {
	kept := entry{
		path: strings.Clone(e.Path), // it lies in a log entry, or in a znode
		zxid: e.Zxid, may: r.permissions(e), typ: e.Type,
	}
	r.bytes += int64(len(kept.path))
	if r.total == r.first || kept.may != r.ring[(r.total-1)%capacity].may {
		r.bytes += kept.may.bytes()
	}
	if r.total-r.first == capacity {
		r.drop()
	}
	if len(r.ring) < capacity {
		if len(r.ring) == cap(r.ring) {
			longer := make([]entry, len(r.ring), min(max(64, 2*len(r.ring)), capacity))
			copy(longer, r.ring)
			r.ring = longer
		}
		r.ring = append(r.ring, kept)
	} else {
		r.ring[r.total%capacity] = kept
	}
	r.total++
	for r.bytes > maxBytes && r.total-r.first > 1 {
		r.drop()
	}
}

// drop forgets the oldest change, which is not the newest.
func (r *record) drop() {
	slot := &r.ring[r.first%capacity]
	r.floor = slot.zxid
	r.bytes -= int64(len(slot.path))
	if slot.may != r.ring[(r.first+1)%capacity].may {
		r.bytes -= slot.may.bytes()
	}
	*slot = entry{}
	r.first++
}

func (p *permissions) bytes() int64 { return znode.ACLMemory(p.own) + znode.ACLMemory(p.parent) }

// permissions returns those of the change before, if e has the same.
func (r *record) permissions(e *znode.Event) *permissions {
	if r.total > r.first {
		p := r.ring[(r.total-1)%capacity].may
		if sameList(p.own, e.ACL) && sameList(p.parent, e.ParentACL) {
			return p
		}
	}
	return &permissions{e.ACL, e.ParentACL}
}

// sameList reports whether two lists are one in memory, as those of the tree are
// that say the same.
func sameList(a, b []znode.ACL) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// clear forgets everything: the state has been replaced by one of that zxid.
func (r *record) clear(zxid znode.Zxid) {
	*r = record{floor: zxid, restart: r.restart + 1}
}

// oldest is the number of the oldest change in the record.
func (r *record) oldest() uint64 { return r.first }

func (r *record) zxid(n uint64) znode.Zxid { return r.ring[n%capacity].zxid }

func (r *record) at(n uint64) znode.Event {
	k := &r.ring[n%capacity]
	return znode.Event{Type: k.typ, Path: k.path, Zxid: k.zxid, ACL: k.may.own, ParentACL: k.may.parent}
}

// seek returns the number of the first change after a zxid.
func (r *record) seek(zxid znode.Zxid) uint64 {
	return r.oldest() + uint64(sort.Search(int(r.total-r.first), func(i int) bool {
		return r.zxid(r.oldest()+uint64(i)) > zxid
	}))
}
