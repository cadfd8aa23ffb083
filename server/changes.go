package server

import (
	"sort"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// maxChanges is how many changes a server remembers for streams that resume:
// some seconds of the heaviest load, hours of a usual one, and a few megabytes, or
// tens of them with long paths.
const maxChanges = 1 << 16

// changes is the record of the newest changes of the tree, numbered from 0. The
// view lock protects it.
type changes struct {
	ring  []change   // grows up to maxChanges; number n is at n % maxChanges
	total uint64     // how many there were
	floor znode.Zxid // every change behind it is in the ring
	life  uint64     // grows when the record starts anew
}

// change is a znode.Event in half its bytes: there are many, and most have the same
// lists as the one before.
type change struct {
	path string
	zxid znode.Zxid
	may  *permissions
	typ  znode.EventType
}

// permissions are an event's lists.
type permissions struct{ own, parent []znode.ACL }

// add puts the newest change in, perhaps in place of the oldest.
func (c *changes) add(e *znode.Event) {
	kept := change{
		path: strings.Clone(e.Path), // it lies in a log entry, or in a znode
		zxid: e.Zxid, may: c.permissions(e), typ: e.Type,
	}
	if len(c.ring) < maxChanges {
		if len(c.ring) == cap(c.ring) {
			longer := make([]change, len(c.ring), min(max(64, 2*len(c.ring)), maxChanges))
			copy(longer, c.ring)
			c.ring = longer
		}
		c.ring = append(c.ring, kept)
	} else {
		slot := &c.ring[c.total%maxChanges]
		c.floor = slot.zxid
		*slot = kept
	}
	c.total++
}

// permissions returns those of the change before, if e has the same.
func (c *changes) permissions(e *znode.Event) *permissions {
	if c.total > 0 {
		p := c.ring[(c.total-1)%maxChanges].may
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

// restart forgets everything: the state has been replaced by one of that zxid.
func (c *changes) restart(zxid znode.Zxid) {
	*c = changes{floor: zxid, life: c.life + 1}
}

// oldest is the number of the oldest change in the record.
func (c *changes) oldest() uint64 { return c.total - uint64(len(c.ring)) }

func (c *changes) zxid(n uint64) znode.Zxid { return c.ring[n%maxChanges].zxid }

func (c *changes) at(n uint64) znode.Event {
	k := &c.ring[n%maxChanges]
	return znode.Event{Type: k.typ, Path: k.path, Zxid: k.zxid, ACL: k.may.own, ParentACL: k.may.parent}
}

// seek returns the number of the first change behind a zxid.
func (c *changes) seek(zxid znode.Zxid) uint64 {
	return c.oldest() + uint64(sort.Search(len(c.ring), func(i int) bool {
		return c.zxid(c.oldest()+uint64(i)) > zxid
	}))
}
