package raftlog

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"
)

// contents is what the log holds, as known in memory. The writer adds to it, the syncer makes it durable, the
// maintenance goroutine adds and removes segments, and readers read.
type contents struct {
	// Set at construction.
	dir     string
	logger  *slog.Logger
	onFatal func(error) // may be nil

	mu   sync.RWMutex
	cond *sync.Cond // on mu: any change of end, durable, err, closed, segments, or of what is asked of the goroutines

	// mu protects the fields below. It is never held during input or output.
	segments   []*segment // consecutive; the last one is current, or will be at the next append
	prepared   []*segment // consecutive, after segments; empty of valid records
	span       span
	index      index
	cache      cache
	end        position // end of the records written
	durable    position // end of the records synced, <= end
	syncedLast uint64   // no entry with an index <= this is volatile
	deletedAt  position // end of the last deletion record
	err        error    // lasting; set by a failed sync
	closed     bool
}

func newContents(dir string, opt *Options) *contents {
	c := &contents{
		dir: dir, logger: opt.Logger, onFatal: opt.OnFatal,
		cache: newCache(opt.CacheEntries, opt.CacheBytes),
	}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *contents) closedLocked() error {
	if c.closed {
		return ErrClosed
	}
	return nil
}

// usableLocked returns an error if the log cannot be changed.
func (c *contents) usableLocked() error {
	if c.err != nil {
		return c.err
	}
	return c.closedLocked()
}

// segmentLocked returns the segment of a position.
func (c *contents) segmentLocked(p position) *segment {
	return c.segments[p.segment()-c.segments[0].id]
}

// bytesFromLocked returns the number of bytes from a position to the end of the log.
func (c *contents) bytesFromLocked(p position) int64 {
	size := c.end.offset() - p.offset()
	for _, g := range c.segments {
		if p.segment() <= g.id && g.id < c.end.segment() {
			size += g.size
		}
	}
	return size
}

// fail records a lasting error and wakes everyone who waits. Only the first one counts.
func (c *contents) fail(err error) error {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	err = c.err
	c.cond.Broadcast()
	c.mu.Unlock()
	if first {
		c.logger.Error("raft log failed, the process must end", "dir", c.dir, "error", err)
		if c.onFatal != nil {
			c.onFatal(err)
		}
	}
	return err
}

// closeQuietly gives up a reference to a segment that may have been dropped.
func (c *contents) closeQuietly(g *segment) {
	if err := g.release(); err != nil {
		c.logger.Warn("closing a dropped log segment", "file", g.path, "error", err)
	}
}

// span is the range of indexes in the log, both ends included; the zero value is the empty log.
// Writer and recovery both follow the log by apply, so they cannot disagree.
type span struct{ first, last uint64 }

func (s span) empty() bool { return s.last == 0 }

func (s span) contains(i uint64) bool { return !s.empty() && s.first <= i && i <= s.last }

// apply returns the span after r, or an error if r cannot follow.
func (s span) apply(r *record) (span, error) {
	i := r.entry.Index
	switch r.kind {
	case kindEntry:
		if i == 0 || !s.empty() && i != s.last+1 {
			return s, fmt.Errorf("entry %d follows entry %d", i, s.last)
		}
		if s.empty() {
			s.first = i
		}
		s.last = i
	case kindSuffix:
		if !s.contains(i) || i == s.first {
			return s, fmt.Errorf("suffix deletion from %d in a log %d-%d", i, s.first, s.last)
		}
		s.last = i - 1
	case kindPrefix:
		if !s.contains(i) {
			return s, fmt.Errorf("prefix deletion below %d in a log %d-%d", i, s.first, s.last)
		}
		s.first = i
	case kindReset:
		return span{}, nil
	case kindStart:
		if from := (span{i, r.entry.Term}); from != s {
			return s, fmt.Errorf("segment starts with log %d-%d, the one before ends with %d-%d",
				from.first, from.last, s.first, s.last)
		}
	case kindSeal, kindOpen:
	}
	return s, nil
}

// chunkLen is the number of positions per chunk of an index: 32 KiB, so that growing never copies
// more than a list of chunks, and a prefix deletion gives memory back.
const chunkLen = 4096

// index maps consecutive Raft indexes to positions, 8 bytes each.
type index struct {
	base   uint64 // Raft index of the first position
	n      int    // number of positions
	skip   int    // unused positions at the start of the first chunk, < chunkLen
	chunks []*[chunkLen]position
}

// get returns the position of i, which must be held.
func (x *index) get(i uint64) position {
	k := int(i-x.base) + x.skip
	return x.chunks[k/chunkLen][k%chunkLen]
}

// add appends the position of i, which must be base+n unless the index is empty.
func (x *index) add(i uint64, p position) {
	if x.n == 0 {
		*x = index{base: i}
	}
	k := x.skip + x.n
	if k == len(x.chunks)*chunkLen {
		x.chunks = append(x.chunks, new([chunkLen]position))
	}
	x.chunks[k/chunkLen][k%chunkLen] = p
	x.n++
}

// deleteFrom forgets i and everything above.
func (x *index) deleteFrom(i uint64) {
	if i <= x.base {
		*x = index{}
		return
	}
	if i-x.base >= uint64(x.n) {
		return
	}
	x.n = int(i - x.base)
	used := (x.skip + x.n + chunkLen - 1) / chunkLen
	clear(x.chunks[used:])
	x.chunks = x.chunks[:used]
}

// deleteBelow forgets everything below i.
func (x *index) deleteBelow(i uint64) {
	if i <= x.base {
		return
	}
	if i-x.base >= uint64(x.n) {
		*x = index{}
		return
	}
	d := int(i - x.base)
	x.base, x.n, x.skip = i, x.n-d, x.skip+d
	whole := x.skip / chunkLen
	x.skip -= whole * chunkLen
	clear(x.chunks[:whole])
	x.chunks = x.chunks[whole:]
}

// cacheEntryOverhead is charged per cached entry on top of its bytes, for the struct itself.
const cacheEntryOverhead = 128

// cache holds the newest entries, so that replicating to a follower that keeps up and applying
// committed entries read nothing from disk. It is a ring: index i has the place i modulo its length.
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

// get copies entry i to out, if the cache has it.
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
