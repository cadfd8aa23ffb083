package raftlog

import (
	"sort"
	"time"

	"github.com/zk-lite/zk-lite/internal/histogram"
)

// Stats is a snapshot of a Store's figures.
type Stats struct {
	Segments     int           // files holding records
	Prepared     int           // files ready for use
	Bytes        int64         // length of all segment files
	FirstIndex   uint64        // 0 if empty
	LastIndex    uint64        // 0 if empty
	Volatile     uint64        // entries written and not yet known durable
	Syncs        uint64        // syncs of records since Open
	SyncLast     time.Duration // of the last sync
	SyncMax      time.Duration // of the longest sync
	SyncTimes    histogram.Counts
	CacheEntries int    // entries in memory
	CacheBytes   int64  // bytes charged for them
	CacheHits    uint64 // entries read from memory since Open
	CacheMisses  uint64 // entries read from disk since Open
}

// Stats returns the current figures.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Stats{
		Segments: len(s.segments), Prepared: len(s.prepared),
		FirstIndex: s.span.first, LastIndex: s.span.last,
		Syncs: s.syncs, SyncLast: s.syncLast, SyncMax: s.syncMax, SyncTimes: s.syncTimes.Counts(),
		CacheEntries: s.cache.n, CacheBytes: s.cache.bytes,
		CacheHits: s.hits.Load(), CacheMisses: s.misses.Load(),
	}
	if s.durable < s.end && s.span.last > s.syncedLast {
		st.Volatile = s.span.last - max(s.syncedLast, s.span.first-1)
	}
	for _, g := range s.segments {
		st.Bytes += g.size
	}
	for _, g := range s.prepared {
		st.Bytes += g.size
	}
	return st
}

// NewestWithin returns how many of the newest entries take at most so many bytes in the files.
func (s *Store) NewestWithin(bytes int64) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	older := sort.Search(s.index.n, func(i int) bool {
		return s.bytesFromLocked(s.index.get(s.index.base+uint64(i))) <= bytes
	})
	return uint64(s.index.n - older)
}

// bytesFromLocked returns how many bytes there are from a position to the end of the log.
func (s *Store) bytesFromLocked(p position) int64 {
	size := s.end.offset() - p.offset()
	for _, g := range s.segments {
		if p.segment() <= g.id && g.id < s.end.segment() {
			size += g.size
		}
	}
	return size
}
