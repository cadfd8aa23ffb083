package raftlog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zk-lite/zk-lite/internal/histogram"
	"github.com/zk-lite/zk-lite/internal/repeats"
)

// Store is a raft.LogStore and raft.MonotonicLogStore. See the package comment for who may call
// what when, and FORMAT.md for what it leaves on disk.
type Store struct {
	// Set at construction.
	fs     FS
	dir    string
	opt    Options
	logger *slog.Logger
	id     uint64 // names this log in all its files
	lock   io.Closer

	// Own synchronisation. writer and syncing are locks that are held during input and output;
	// they are channels so that waiting for them also counts as waiting in a synctest bubble.
	async   atomic.Pointer[func([]*raft.Log) bool]
	writer  chan struct{} // held by who changes the log
	syncing chan struct{} // held by who syncs it; taken after writer, if both
	wake    chan struct{} // of the maintenance goroutine
	stop    chan struct{} // closed by Close
	wg      sync.WaitGroup
	repeats repeats.Filter
	hits    atomic.Uint64
	misses  atomic.Uint64

	// Protected by holding writer.
	buf      []byte   // encodings, reused
	current  *segment // where records go
	offset   int64    // where the next record goes in it
	writeGen uint64   // generation of the next record

	// Protected by the maintenance goroutine, and by Open and Close while it does not run.
	manifest  manifest
	highWater File        // nil if it cannot be written; it is only a hint
	noteTimer *time.Timer // wakes it; reset by who holds mu

	mu   sync.RWMutex
	cond *sync.Cond // on mu: any change of end, durable, err, closed, segments or maintenance

	// mu protects the fields below. It is never held during input or output.
	segments    []*segment // consecutive; the last one is current, or will be at the next append
	prepared    []*segment // consecutive, after segments; empty of valid records
	span        span
	index       index
	cache       cache
	end         position  // end of the records written
	durable     position  // end of the records synced, <= end
	syncedLast  uint64    // no entry with an index <= this is volatile
	wantSync    position  // the syncer makes this durable
	deletedAt   position  // end of the last deletion record
	inFlight    time.Time // when the oldest record was written that the running sync covers
	waiting     time.Time // when the oldest record was written that no sync has started for
	err         error     // lasting; set by a failed sync
	closed      bool
	stopping    bool // the syncer ends
	maintenance maintenanceState
	syncs       uint64
	syncLast    time.Duration
	syncMax     time.Duration
	syncTimes   histogram.Histogram
	syncedAt    time.Time     // when the last sync ended
	syncRecent  time.Duration // falls by an eighth with each sync that is shorter
}

var (
	_ raft.LogStore          = (*Store)(nil)
	_ raft.MonotonicLogStore = (*Store)(nil)
)

// ID is a number that the log got when it was made, and that no other log has.
func (s *Store) ID() uint64 { return s.id }

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

func (s *Store) closedLocked() error {
	if s.closed {
		return ErrClosed
	}
	return nil
}

// usableLocked returns the reason why the log cannot be changed.
func (s *Store) usableLocked() error {
	if s.err != nil {
		return s.err
	}
	return s.closedLocked()
}

// SetAsync sets the rule that StoreLogs calls for each batch, on the caller's goroutine: if it returns
// true, StoreLogs may return before the batch is durable. Without a rule it never does. That Raft is safe
// with it rests on WaitDurable and on the rule (docs/adr/0006).
func (s *Store) SetAsync(mayReturnEarly func(batch []*raft.Log) bool) { s.async.Store(&mayReturnEarly) }

func acquire(token chan struct{}) { token <- struct{}{} }
func release(token chan struct{}) { <-token }

// fail records a lasting error and wakes all that wait. Only the first one counts.
func (s *Store) fail(err error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
	}
	err = s.err
	s.cond.Broadcast()
	s.mu.Unlock()
	if first {
		s.logger.Error("raft log failed, the process must end", "dir", s.dir, "error", err)
		if s.opt.OnFatal != nil {
			s.opt.OnFatal(err)
		}
	}
	return err
}

// Close makes everything durable, notes that in the manifest, so that later damage to any entry is
// noticed, ends the goroutines and closes the files. The error of a failed sync, earlier or now,
// is returned. Further calls return ErrClosed.
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
	err := s.syncTo(end)
	s.stopGoroutines()
	if err == nil {
		m := s.manifest
		m.highWater = end
		if _, err = commitManifest(s.fs, s.dir, m); err != nil {
			err = fmt.Errorf("raftlog: closing: %w", err)
		}
	}
	return errors.Join(err, s.closeFiles())
}

func (s *Store) stopGoroutines() {
	s.mu.Lock()
	s.stopping = true
	s.cond.Broadcast()
	s.mu.Unlock()
	close(s.stop)
	s.wg.Wait()
}

func (s *Store) closeFiles() error {
	s.mu.Lock()
	all := append(append([]*segment(nil), s.segments...), s.prepared...)
	s.segments, s.prepared = nil, nil
	s.mu.Unlock()
	var errs []error
	for _, g := range all {
		errs = append(errs, g.release())
	}
	if s.highWater != nil {
		errs = append(errs, s.highWater.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
