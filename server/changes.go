package server

import (
	"sort"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// maxChanges is how many changes a server remembers for streams that resume:
// some seconds of the heaviest load, hours of a usual one, and at most a few tens
// of megabytes.
const maxChanges = 1 << 16

// changes is the record of the newest changes of the tree, numbered from 0. The
// view lock protects it.
type changes struct {
	ring  []znode.Event // grows up to maxChanges; number n is at n % maxChanges
	total uint64        // how many there were
	floor znode.Zxid    // every change behind it is in the ring
	life  uint64        // grows when the record starts anew
}

// add puts the newest change in, perhaps in place of the oldest.
func (c *changes) add(e *znode.Event) {
	kept := *e
	kept.Path = strings.Clone(e.Path) // it lies in a log entry, or in a znode
	if len(c.ring) < maxChanges {
		c.ring = append(c.ring, kept)
	} else {
		slot := &c.ring[c.total%maxChanges]
		c.floor = slot.Zxid
		*slot = kept
	}
	c.total++
}

// restart forgets everything: the state has been replaced by one of that zxid.
func (c *changes) restart(zxid znode.Zxid) {
	*c = changes{floor: zxid, life: c.life + 1}
}

// oldest is the number of the oldest change in the record.
func (c *changes) oldest() uint64 { return c.total - uint64(len(c.ring)) }

func (c *changes) at(n uint64) *znode.Event { return &c.ring[n%maxChanges] }

// seek returns the number of the first change behind a zxid.
func (c *changes) seek(zxid znode.Zxid) uint64 {
	return c.oldest() + uint64(sort.Search(len(c.ring), func(i int) bool {
		return c.at(c.oldest()+uint64(i)).Zxid > zxid
	}))
}
