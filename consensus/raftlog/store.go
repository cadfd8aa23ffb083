package raftlog

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Store is a raft.LogStore and raft.MonotonicLogStore. See the package comment for concurrency,
// and FORMAT.md for the files.
type Store struct {
	*contents
	directory   *directory
	syncer      *syncer
	maintenance *maintenance
	goroutines  sync.WaitGroup

	async  atomic.Pointer[func([]*raft.Log) bool]
	hits   atomic.Uint64
	misses atomic.Uint64

	// writer is held by the one who changes the log, also during input and output; it is a channel so that waiting for
	// it counts as waiting in a synctest bubble. It protects the fields below.
	writer     chan struct{}
	buf        []byte   // encodings, reused
	current    *segment // where records go
	offset     int64    // where the next record goes in it
	generation uint64   // of the next record
}

var (
	_ raft.LogStore          = (*Store)(nil)
	_ raft.MonotonicLogStore = (*Store)(nil)
)

// Open opens the log in dir, which is created if it does not exist. It verifies every record and
// returns a *CorruptError if anything is damaged that was known durable; what is torn above that
// is cut off. When it returns, everything in the log is durable.
func Open(dir string, opt Options) (*Store, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{contents: newContents(dir, &opt), directory: newDirectory(dir, &opt), writer: make(chan struct{}, 1)}
	s.maintenance = newMaintenance(s.contents, s.directory)
	s.syncer = newSyncer(s.contents, s.maintenance)
	if err := s.openFiles(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	s.goroutines.Go(s.syncer.syncWritten)
	s.goroutines.Go(s.maintenance.maintain)
	if err := s.markOpened(); err != nil {
		s.stopGoroutines()
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

// openFiles brings the store to the state before the record that marks the opening.
func (s *Store) openFiles() error {
	if err := s.directory.open(); err != nil {
		return err
	}
	var err error
	if s.segments, err = s.directory.openSegments(); err != nil {
		return err
	}
	r, err := recoverRecords(s.directory, s.segments, nil)
	if err != nil {
		return err
	}
	// Only now: by an older manifest, which is refused above, segments that count would look
	// unused.
	if err := s.directory.removeUnlisted(); err != nil {
		return err
	}
	return s.resume(r)
}

// resume makes the result of recovery durable, and the state of the store.
func (s *Store) resume(r *recovery) error {
	if err := r.rewriteVolatile(s.segments); err != nil {
		return err
	}
	m := s.directory.manifest
	if m.opens == math.MaxUint32 {
		return errors.New("raftlog: the log was opened too often")
	}
	m.opens++
	m.highWater = max(m.highWater, r.end)
	if _, err := s.directory.commit(m); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	s.generation = uint64(m.opens) << 32
	s.directory.openHighWater()
	if len(s.segments) == 0 {
		g, err := s.maintenance.newSegment()
		if err != nil {
			return err
		}
		s.segments = append(s.segments, g)
		r.end = at(g.id, segmentHeaderSize)
	} else {
		for _, g := range s.segments[r.end.segment()-s.segments[0].id:] { // where records will go
			if err := s.directory.openDirectWriter(g); err != nil {
				return fmt.Errorf("raftlog: %w", err)
			}
		}
	}
	used := int(r.end.segment()-s.segments[0].id) + 1
	s.prepared = append([]*segment(nil), s.segments[used:]...)
	s.segments = s.segments[:used:used]
	s.current, s.offset = s.segments[used-1], r.end.offset()
	s.span, s.index = r.span, r.index
	s.end, s.durable, s.syncedLast = r.end, r.end, r.span.last
	s.maintenance.wantSegment = true
	s.maintenance.wantDrop = true
	return nil
}

// markOpened writes a record of the new generation at the end. From then on nothing that an
// earlier generation left after it can be mistaken for a record, and everything before is below
// the durable mark.
func (s *Store) markOpened() error {
	acquire(s.writer)
	defer release(s.writer)
	b, err := s.begin()
	if err != nil {
		return err
	}
	if err = b.add(kindOpen, &raft.Log{}); err == nil {
		err = b.flush()
	}
	if err != nil {
		b.abandon()
		return err
	}
	err = s.syncer.syncTo(b.commit(nil, true))
	s.maintenance.wake()
	return err
}

// Close makes everything durable, records that in the manifest, so that later damage to any entry
// is detected, ends the goroutines and closes the files. It returns the error of a failed sync,
// earlier or now. Later calls return ErrClosed.
func (s *Store) Close() error {
	acquire(s.writer)
	defer release(s.writer)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	end := s.end
	s.cond.Broadcast()
	s.mu.Unlock()
	err := s.syncer.syncTo(end)
	s.stopGoroutines()
	if err == nil {
		m := s.directory.manifest
		m.highWater = end
		if _, err = s.directory.commit(m); err != nil {
			err = fmt.Errorf("raftlog: closing: %w", err)
		}
	}
	return errors.Join(err, s.closeFiles())
}

func (s *Store) stopGoroutines() {
	s.mu.Lock()
	s.syncer.stopping = true
	s.cond.Broadcast()
	s.mu.Unlock()
	close(s.maintenance.stop)
	s.goroutines.Wait()
}

func (s *Store) closeFiles() error {
	s.mu.Lock()
	all := append(append([]*segment(nil), s.segments...), s.prepared...)
	s.segments, s.prepared = nil, nil
	s.mu.Unlock()
	return errors.Join(releaseAll(all), s.directory.close())
}

func releaseAll(segments []*segment) error {
	var errs []error
	for _, g := range segments {
		errs = append(errs, g.release())
	}
	return errors.Join(errs...)
}

func acquire(token chan struct{}) { token <- struct{}{} }
func release(token chan struct{}) { <-token }
