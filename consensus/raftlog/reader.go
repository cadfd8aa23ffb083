package raftlog

import (
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/histogram"
)

// readAhead bytes are read with a record's header, so that a small entry takes one
// system call.
const readAhead = 512

// ID is a number that identifies the log, chosen when it was created.
func (s *Store) ID() uint64 { return s.directory.id }

// IsMonotonic is true: Raft then empties the log after installing a snapshot, so that indexes in
// the store always follow each other.
func (s *Store) IsMonotonic() bool { return true }

// FirstIndex returns the index of the oldest entry, 0 if there is none.
func (s *Store) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.span.first, s.closedLocked()
}

// LastIndex returns the index of the newest entry, durable or not, 0 if there is none.
func (s *Store) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.span.last, s.closedLocked()
}

// GetLog copies the entry with the given index to out. Its Data and Extensions must not be
// changed: they may be shared with the store and other readers. Errors: raft.ErrLogNotFound
// for an index that is not in the log, *CorruptError for a damaged entry.
func (s *Store) GetLog(i uint64, out *raft.Log) error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return ErrClosed
	}
	if !s.span.contains(i) {
		s.mu.RUnlock()
		return raft.ErrLogNotFound
	}
	if s.cache.get(i, out) {
		s.mu.RUnlock()
		s.hits.Add(1)
		return nil
	}
	p := s.index.get(i)
	g := s.segmentLocked(p)
	g.acquire() // the file stays open though the segment may be dropped meanwhile
	s.mu.RUnlock()
	s.misses.Add(1)
	defer s.closeQuietly(g)
	return readEntry(g, p.offset(), i, out)
}

// readEntry reads and verifies entry i, whose record starts at off.
func readEntry(g *segment, off int64, i uint64, out *raft.Log) error {
	limit := g.size - off
	b := make([]byte, min(readAhead, limit))
	if err := readFull(g.file, b, off); err != nil {
		return fmt.Errorf("raftlog: reading entry %d from %s at %d: %w", i, g.path, off, err)
	}
	corrupt := func(reason string) error {
		return &CorruptError{File: g.path, Offset: off, Index: i, Reason: reason}
	}
	n, err := recordExtent(b, limit)
	if err != nil {
		return corrupt(err.Error())
	}
	if n > int64(len(b)) {
		rest := make([]byte, n)
		copy(rest, b)
		if err := readFull(g.file, rest[len(b):], off+int64(len(b))); err != nil {
			return fmt.Errorf("raftlog: reading entry %d from %s at %d: %w", i, g.path, off, err)
		}
		b = rest
	}
	r, _, err := decodeRecord(b[:n], g.id, off)
	if err != nil {
		return corrupt(err.Error())
	}
	if r.kind != kindEntry || r.entry.Index != i {
		return corrupt(fmt.Sprintf("record of kind %d, index %d", r.kind, r.entry.Index))
	}
	*out = r.entry
	return nil
}

// WaitDurable returns nil as soon as no entry with an index <= i is volatile. Indexes that the log
// does not hold, because a snapshot replaced them or they lie in a gap, are not volatile. After a
// failed sync it returns that error for every index that was volatile then.
func (s *Store) WaitDurable(i uint64) error {
	s.mu.RLock()
	settled := s.durable >= s.end || i <= s.syncedLast
	s.mu.RUnlock()
	if settled {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.durable < s.end && i > s.syncedLast {
		if s.err != nil {
			return s.err
		}
		s.cond.Wait()
	}
	return nil
}

// Stalled returns the age of the oldest record that is written but not yet known durable, 0 if
// there is none. It reveals a disk that hangs, unless the write itself hangs.
func (s *Store) Stalled() time.Duration {
	s.mu.RLock()
	defer s.mu.RUnlock()
	oldest := s.syncer.inFlight
	if oldest.IsZero() {
		oldest = s.syncer.waiting
	}
	if oldest.IsZero() {
		return 0
	}
	// Never 0 for a volatile record, even if the clock is coarse.
	return max(time.Since(oldest), 1)
}

// SyncedAt returns when the last sync ended, if it or one before has made an entry durable; otherwise the zero Time.
func (s *Store) SyncedAt(index uint64) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if index > s.syncedLast {
		return time.Time{}
	}
	return s.syncer.endedAt
}

// SyncTime returns how long the slowest of the last few syncs took.
func (s *Store) SyncTime() time.Duration {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.syncer.recent
}

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
		Syncs: s.syncer.count, SyncLast: s.syncer.last, SyncMax: s.syncer.longest, SyncTimes: s.syncer.times.Counts(),
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

// NewestWithin returns how many of the newest entries fit into the given number of bytes in
// the files.
func (s *Store) NewestWithin(bytes int64) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	older := sort.Search(s.index.n, func(i int) bool {
		return s.bytesFromLocked(s.index.get(s.index.base+uint64(i))) <= bytes
	})
	return uint64(s.index.n - older)
}

// Visit calls visit with each entry of the log in dir, oldest first, until it returns an error. It changes nothing, and
// another process may have the log open: entries that it appends meanwhile may be left out. Errors: as of Open.
func Visit(dir string, opt Options, visit func(*raft.Log) error) (err error) {
	opt.MustExist = true
	if opt, err = opt.withDefaults(); err != nil {
		return err
	}
	d := newDirectory(dir, &opt)
	if err := d.loadManifest(); err != nil {
		return err
	}
	segments, err := d.openSegments()
	defer func() { err = errors.Join(err, releaseAll(segments)) }()
	if err != nil {
		return err
	}
	r, err := recoverRecords(d, segments, nil)
	if err != nil || r.span.empty() {
		return err
	}
	for i := r.span.first; i <= r.span.last; i++ {
		p := r.index.get(i)
		var l raft.Log
		if err := readEntry(segments[p.segment()-segments[0].id], p.offset(), i, &l); err != nil {
			return err
		}
		if err := visit(&l); err != nil {
			return err
		}
	}
	return nil
}
