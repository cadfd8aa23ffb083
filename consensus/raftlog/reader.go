package raftlog

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// readAhead is read with a record's header, so that a small entry takes one system call.
const readAhead = 512

// GetLog copies the entry with the given index to out. Its Data and Extensions must not be
// changed: they may be shared with the store and other readers. An index that the log does not
// hold gives raft.ErrLogNotFound, an entry that is not what was written a *CorruptError.
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
	g := s.segments[p.segment()-s.segments[0].id]
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
