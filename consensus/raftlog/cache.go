package raftlog

import "github.com/hashicorp/raft"

// cacheEntryOverhead is charged per cached entry on top of its bytes, for the struct itself.
const cacheEntryOverhead = 128

// cache holds the newest entries, so that replicating to a follower that keeps up and applying
// committed entries read nothing from disk. It is a ring: index i stands at i modulo its length.
type cache struct {
	maxBytes int64
	ring     []raft.Log
	base     uint64 // index of the oldest entry held
	n        int
	bytes    int64
}

func newCache(entries int, maxBytes int64) cache {
	return cache{maxBytes: maxBytes, ring: make([]raft.Log, max(entries, 0))}
}

func cost(e *raft.Log) int64 {
	return int64(len(e.Data)) + int64(len(e.Extensions)) + cacheEntryOverhead
}

func (c *cache) slot(i uint64) *raft.Log { return &c.ring[i%uint64(len(c.ring))] }

// get copies entry i to out, if it is held.
func (c *cache) get(i uint64, out *raft.Log) bool {
	if c.n == 0 || i < c.base || i-c.base >= uint64(c.n) {
		return false
	}
	*out = *c.slot(i)
	return true
}

// add appends e. A gap empties the cache first.
func (c *cache) add(e *raft.Log) {
	if len(c.ring) == 0 {
		return
	}
	if c.n > 0 && e.Index != c.base+uint64(c.n) {
		c.reset()
	}
	need := cost(e)
	for c.n > 0 && (c.n == len(c.ring) || c.bytes+need > c.maxBytes) {
		c.evict()
	}
	if need > c.maxBytes {
		return
	}
	if c.n == 0 {
		c.base = e.Index
	}
	*c.slot(e.Index) = *e
	c.n++
	c.bytes += need
}

func (c *cache) evict() {
	s := c.slot(c.base)
	c.bytes -= cost(s)
	*s = raft.Log{}
	c.base++
	c.n--
}

func (c *cache) reset() {
	for c.n > 0 {
		c.evict()
	}
}

func (c *cache) deleteBelow(i uint64) {
	for c.n > 0 && c.base < i {
		c.evict()
	}
}

func (c *cache) deleteFrom(i uint64) {
	for c.n > 0 && c.base+uint64(c.n) > i {
		s := c.slot(c.base + uint64(c.n) - 1)
		c.bytes -= cost(s)
		*s = raft.Log{}
		c.n--
	}
}
