package raftlog

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// DeleteRange deletes the entries min to max, both included, which must be a prefix or a suffix of
// the log, or all of it; parts of the range outside the log are ignored. When it returns, the
// deletion is durable. Segments that hold no entry any more are removed in the background.
func (s *Store) DeleteRange(minIndex, maxIndex uint64) error {
	end, err := s.deleteLogged(minIndex, maxIndex)
	if err == nil {
		err = s.syncTo(end)
	}
	if err != nil {
		return err
	}
	s.requestDrop()
	return nil
}

// planDeletion returns the record for a deletion, or kind 0 if there is nothing to delete.
func (s *Store) planDeletion(minIndex, maxIndex uint64) (kind, uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sp := s.span
	if err := s.usableLocked(); err != nil {
		return 0, 0, err
	}
	switch {
	case sp.empty() || minIndex > maxIndex || maxIndex < sp.first || minIndex > sp.last:
		return 0, 0, nil
	case minIndex <= sp.first && maxIndex >= sp.last:
		return kindReset, 0, nil
	case minIndex <= sp.first:
		return kindPrefix, maxIndex + 1, nil
	case maxIndex >= sp.last:
		return kindSuffix, minIndex, nil
	}
	return 0, 0, fmt.Errorf("raftlog: deleting %d-%d from the middle of the log %d-%d",
		minIndex, maxIndex, sp.first, sp.last)
}

// deleteLogged writes the record, applies it and returns what must be synced. Prefix deletions come
// from Raft's snapshot goroutine while others append: those wait for the write, not for the sync.
func (s *Store) deleteLogged(minIndex, maxIndex uint64) (position, error) {
	acquire(s.writer)
	defer release(s.writer)
	k, i, err := s.planDeletion(minIndex, maxIndex)
	switch {
	case err != nil || k == 0:
		return 0, err
	case k == kindPrefix:
		return s.writeDeletion(k, i)
	default:
		return 0, s.deleteHoldingWriter(k, i)
	}
}

// deleteHoldingWriter deletes with nothing volatile before or after: a sync that runs while
// indexes are taken back could otherwise publish one that is being rewritten.
func (s *Store) deleteHoldingWriter(k kind, i uint64) error {
	s.mu.RLock()
	end := s.end
	s.mu.RUnlock()
	if err := s.syncTo(end); err != nil {
		return err
	}
	end, err := s.writeDeletion(k, i)
	if err != nil {
		return err
	}
	return s.syncTo(end)
}

// writeDeletion writes a deletion and applies it to what is in memory. The caller holds writer.
func (s *Store) writeDeletion(k kind, i uint64) (position, error) {
	b, err := s.begin()
	if err != nil {
		return 0, err
	}
	if err = b.add(k, &raft.Log{Index: i}); err == nil {
		err = b.flush()
	}
	if err != nil {
		b.abandon()
		return 0, err
	}
	s.mu.Lock()
	switch k {
	case kindPrefix:
		s.index.deleteBelow(i)
		s.cache.deleteBelow(i)
	case kindSuffix:
		s.index.deleteFrom(i)
		s.cache.deleteFrom(i)
		s.syncedLast = min(s.syncedLast, i-1)
	case kindReset:
		s.index = index{}
		s.cache.reset()
		s.syncedLast = 0
	default:
		panic(fmt.Sprintf("raftlog: kind %d is no deletion", k))
	}
	s.span = b.span // in the same step as index: readers see both or none
	s.deletedAt = at(b.seg.id, b.offset)
	s.mu.Unlock()
	return b.commit(nil, true), nil
}
