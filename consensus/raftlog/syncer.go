package raftlog

import (
	"fmt"
	"time"
)

// syncTo returns when every record below target is durable, or with the store's lasting error. A
// sync covers all that was written when it started, so callers that queue up share one.
func (s *Store) syncTo(target position) error {
	acquire(s.syncing)
	defer release(s.syncing)
	s.mu.Lock()
	if s.err != nil || s.durable >= target {
		defer s.mu.Unlock()
		return s.err
	}
	goal, last := s.end, s.span.last
	var files []*segment
	for _, g := range s.segments {
		if g.id >= s.durable.segment() && g.id <= goal.segment() {
			g.acquire()
			files = append(files, g)
		}
	}
	s.inFlight, s.waiting = s.waiting, time.Time{}
	s.mu.Unlock()

	start := time.Now()
	var err error
	for _, g := range files {
		if err == nil {
			if err = g.file.Datasync(); err != nil {
				err = fmt.Errorf("raftlog: syncing %s: %w", g.path, err)
			}
		}
		if w, is := g.file.(*directWriter); is && g.id < goal.segment() {
			w.freeBuffers() // the segment is sealed
		}
		s.closeQuietly(g)
	}
	if err != nil {
		// The kernel may have dropped the pages that it could not write and report success
		// next time: a retry could call lost records durable. So this is the end.
		return s.fail(err)
	}
	s.publish(goal, last, start, time.Since(start))
	return nil
}

// publish makes known that records below goal, with entries up to last, are durable.
func (s *Store) publish(goal position, last uint64, start time.Time, took time.Duration) {
	s.mu.Lock()
	s.durable, s.syncedLast = goal, last
	s.inFlight = time.Time{}
	s.syncs++
	s.syncedAt = start.Add(took)
	s.syncTimes.Observe(took)
	s.syncLast, s.syncMax = took, max(s.syncMax, took)
	s.syncRecent = max(took, s.syncRecent*7/8)
	s.cond.Broadcast()
	if s.maintenance.wantDrop {
		s.wakeMaintenance()
	}
	if !s.maintenance.noteDue {
		s.maintenance.noteDue = true
		s.noteTimer.Reset(noteEvery)
	}
	s.mu.Unlock()
}

func (s *Store) closeQuietly(g *segment) {
	if err := g.release(); err != nil {
		s.logger.Warn("closing a dropped log segment", "file", g.path, "error", err)
	}
}

// syncer makes the records of asynchronous appends durable. Records written during a sync share
// the next one. It ends at a failed sync, or when Close has synced the rest.
func (s *Store) syncer() {
	defer s.wg.Done()
	for {
		s.mu.Lock()
		for s.wantSync <= s.durable && !s.stopping && s.err == nil {
			s.cond.Wait()
		}
		target, done := s.wantSync, s.stopping || s.err != nil
		s.mu.Unlock()
		if done || s.syncTo(target) != nil {
			return
		}
	}
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
// there is none. A disk that hangs shows here, unless the write itself hangs.
func (s *Store) Stalled() time.Duration {
	s.mu.RLock()
	defer s.mu.RUnlock()
	oldest := s.inFlight
	if oldest.IsZero() {
		oldest = s.waiting
	}
	if oldest.IsZero() {
		return 0
	}
	// Never 0 for a volatile record, however coarse the clock.
	return max(time.Since(oldest), 1)
}

// SyncedAt returns when the last sync ended, if it or one before has made an entry durable; otherwise the zero Time.
func (s *Store) SyncedAt(index uint64) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if index > s.syncedLast {
		return time.Time{}
	}
	return s.syncedAt
}

// SyncTime returns how long the slowest of the last few syncs took.
func (s *Store) SyncTime() time.Duration {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.syncRecent
}
