package raftlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// maxKeptBuffer bounds the encoding buffer that is kept between appends.
const maxKeptBuffer = 4 << 20

// SetAsync sets the rule that StoreLogs calls for each batch, on the caller's goroutine: if it returns
// true, StoreLogs may return before the batch is durable. Without a rule it never does. Raft's safety
// then depends on WaitDurable and on the rule (docs/adr/0006).
func (s *Store) SetAsync(mayReturnEarly func(batch []*raft.Log) bool) { s.async.Store(&mayReturnEarly) }

// StoreLog appends one entry; see StoreLogs.
func (s *Store) StoreLog(e *raft.Log) error { return s.StoreLogs([]*raft.Log{e}) }

// StoreLogs appends entries, all or none as long as the process lives. The first must follow the last
// one in the log; an empty log accepts any index. If there is a gap, as after a power cut that left
// the log shorter than the newest snapshot, the log restarts with it: Raft sends such an entry only
// to a server that has a snapshot of the gap. StoreLogs returns when the entries are durable, or, if
// the rule of SetAsync allows it, when they are written. Data and Extensions of the entries must not
// be changed afterwards. An error of a write (a full disk) leaves the log as it was; that of a failed
// sync is lasting.
func (s *Store) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	may := s.async.Load()
	wait := may == nil || !(*may)(entries)
	// Only a leader need not wait. If it is killed the kernel closes its connections, by which the others notice
	// (docs/adr/0007), and before that would take 30 ms to end what parked goroutines need.
	s.directory.park.Store(wait)
	end, wait, err := s.store(entries, wait)
	if err != nil || !wait {
		return err
	}
	return s.syncer.syncTo(end)
}

func (s *Store) store(entries []*raft.Log, wait bool) (position, bool, error) {
	acquire(s.writer)
	defer release(s.writer)
	if s.gapBefore(entries[0].Index) {
		if err := s.startAnew(entries[0].Index); err != nil {
			return 0, wait, err
		}
		wait = true
	}
	b, err := s.begin()
	if err != nil {
		return 0, wait, err
	}
	for _, e := range entries {
		if err = b.add(kindEntry, e); err != nil {
			break
		}
	}
	if err == nil {
		err = b.flush()
	}
	if err != nil {
		b.abandon()
		return 0, wait, err
	}
	return b.commit(entries, wait), wait, nil
}

func (s *Store) gapBefore(i uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !s.span.empty() && i > s.span.last+1
}

// startAnew empties the log for an entry above last+1.
func (s *Store) startAnew(next uint64) error {
	s.mu.RLock()
	had := s.span
	s.mu.RUnlock()
	s.logger.Warn("raft log starts anew after a gap that a snapshot must cover",
		"dir", s.dir, "first", had.first, "last", had.last, "next", next)
	return s.deleteHoldingWriter(kindReset, 0)
}

// DeleteRange deletes the entries min to max, both included, which must be a prefix or a suffix of
// the log, or all of it; parts of the range outside the log are ignored. When it returns, the
// deletion is durable. Segments that hold no entry are removed in the background.
func (s *Store) DeleteRange(minIndex, maxIndex uint64) error {
	end, err := s.deleteLogged(minIndex, maxIndex)
	if err == nil {
		err = s.syncer.syncTo(end)
	}
	if err != nil {
		return err
	}
	s.maintenance.requestDrop()
	return nil
}

// planDeletion returns the record for a deletion, with kind 0 if there is nothing to
// delete.
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

// deleteHoldingWriter deletes with nothing volatile before or after: otherwise a concurrent
// sync could publish an index that is being rewritten.
func (s *Store) deleteHoldingWriter(k kind, i uint64) error {
	s.mu.RLock()
	end := s.end
	s.mu.RUnlock()
	if err := s.syncer.syncTo(end); err != nil {
		return err
	}
	end, err := s.writeDeletion(k, i)
	if err != nil {
		return err
	}
	return s.syncer.syncTo(end)
}

// writeDeletion writes a deletion and applies it in memory. The caller holds writer.
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

// batch writes records after the end of the log. Until commit they do not count, and abandon
// undoes them.
type batch struct {
	s      *Store
	mark   position
	span   span
	seg    *segment
	offset int64 // where the next record goes
	from   int64 // where buf goes
	buf    []byte
	rolled int // segments entered
	size   int64
	places []position
}

// begin starts a batch. The caller holds writer until commit or abandon.
func (s *Store) begin() (*batch, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usableLocked(); err != nil {
		return nil, err
	}
	return &batch{
		s: s, mark: s.durable, span: s.span,
		seg: s.current, offset: s.offset, from: s.offset, buf: s.buf[:0],
	}, nil
}

// add encodes a record of kind k, with e's fields, and rolls to the next segment if it must.
func (b *batch) add(k kind, e *raft.Log) error {
	size := recordSize(e)
	if room := b.s.directory.opt.SegmentSize - segmentHeaderSize - 2*recordHeaderSize; size > room {
		return fmt.Errorf("%w: it takes %d bytes, a segment has room for %d", ErrEntryTooLarge, size, room)
	}
	// Every segment reserves room for its seal. Roll until a segment is long enough.
	b.start()
	for b.offset+size+recordHeaderSize > b.seg.size {
		if err := b.roll(size); err != nil {
			return err
		}
		b.start()
	}
	r := record{kind: k, entry: *e}
	next, err := b.span.apply(&r)
	if err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	if k == kindEntry {
		b.places = append(b.places, at(b.seg.id, b.offset))
	}
	b.encode(k, e)
	b.span = next
	return nil
}

// start begins a segment.
func (b *batch) start() {
	if b.offset == segmentHeaderSize {
		b.encode(kindStart, &raft.Log{Index: b.span.first, Term: b.span.last})
	}
}

func (b *batch) encode(k kind, e *raft.Log) {
	r := record{kind: k, generation: b.s.generation, mark: b.mark, entry: *e}
	before := len(b.buf)
	b.buf = appendRecord(b.buf, &r, b.seg.id, b.offset)
	b.offset = b.from + int64(len(b.buf))
	b.size += int64(len(b.buf) - before)
}

// roll seals the segment and continues in the next one. If the next record, of size bytes, does not fit
// there, it fits in the one after that.
func (b *batch) roll(size int64) error {
	next, err := b.s.maintenance.takePrepared(b.size + size + segmentHeaderSize + 2*recordHeaderSize)
	if err != nil {
		return err
	}
	b.rolled++
	b.encode(kindSeal, &raft.Log{})
	if err := b.flush(); err != nil {
		return err
	}
	b.seg, b.offset, b.from = next, segmentHeaderSize, segmentHeaderSize
	return nil
}

// flush writes the encoded records.
func (b *batch) flush() error {
	if len(b.buf) == 0 {
		return nil
	}
	if err := writeFull(b.seg.file, b.buf, b.from); err != nil {
		return fmt.Errorf("raftlog: writing to %s at %d: %w", b.seg.path, b.from, err)
	}
	b.from = b.offset
	b.buf = b.buf[:0]
	return nil
}

// abandon undoes the batch. The bytes that it left in the files have the old generation, so that
// recovery does not mistake them for records once a newer record is written before them. Until
// then a blanked first header prevents that, if it can be written.
func (b *batch) abandon() {
	s := b.s
	s.generation++
	if uint32(s.generation) == 0 {
		_ = s.fail(errors.New("raftlog: 2^32 writes failed since the log was opened"))
	}
	s.keepBuffer(b.buf)
	_ = writeFull(s.current.file, make([]byte, recordHeaderSize), s.offset)
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := len(s.segments) - b.rolled
	s.prepared = append(append([]*segment(nil), s.segments[keep:]...), s.prepared...)
	s.segments = s.segments[:keep:keep]
}

// commit makes the batch visible and returns its end. Entries are added to index and cache;
// deletions have been applied to those by the caller under the same hold of writer.
func (b *batch) commit(entries []*raft.Log, wait bool) position {
	s := b.s
	s.current, s.offset = b.seg, b.offset
	s.keepBuffer(b.buf)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.span = b.span
	for i, e := range entries {
		s.index.add(e.Index, b.places[i])
		s.cache.add(e)
	}
	s.end = at(b.seg.id, b.offset)
	s.syncer.writtenLocked(now, wait)
	return s.end
}

func (s *Store) keepBuffer(b []byte) {
	if cap(b) > maxKeptBuffer {
		b = nil
	}
	s.buf = b
}
