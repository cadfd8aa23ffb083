package raftlog

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/internal/histogram"
)

// syncer makes records durable: its goroutine those of asynchronous appends, its callers all others.
type syncer struct {
	*contents
	maintenance *maintenance
	syncing     chan struct{} // held by the one who syncs; taken after Store.writer, if both

	// contents.mu protects the fields below.
	wantSync position  // the goroutine makes this durable
	stopping bool      // the goroutine ends
	inFlight time.Time // when the oldest record was written that the running sync covers
	waiting  time.Time // when the oldest record was written that no sync has started for
	count    uint64
	last     time.Duration
	longest  time.Duration
	times    histogram.Histogram
	endedAt  time.Time     // when the last sync ended
	recent   time.Duration // falls by an eighth with each sync that is shorter
}

func newSyncer(c *contents, m *maintenance) *syncer {
	return &syncer{contents: c, maintenance: m, syncing: make(chan struct{}, 1)}
}

// syncWritten makes the records of asynchronous appends durable. Records written during a sync share
// the next one. It returns after a failed sync, or when Close has synced the rest.
func (s *syncer) syncWritten() {
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

// writtenLocked notes that records were written just now. Unless the caller waits for the sync, the goroutine does it.
func (s *syncer) writtenLocked(now time.Time, callerWaits bool) {
	if s.waiting.IsZero() {
		s.waiting = now
	}
	if !callerWaits {
		s.wantSync = s.end
		s.cond.Broadcast()
	}
}

// syncTo returns when every record below target is durable, or with the log's lasting error. A
// sync covers everything written before it started, so waiting callers share one.
func (s *syncer) syncTo(target position) error {
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
			w.rest() // the segment is sealed
		}
		s.closeQuietly(g)
	}
	if err != nil {
		// The kernel may have dropped the pages that it could not write and report success
		// next time: after a retry, lost records could count as durable. So the error is
		// final.
		return s.fail(err)
	}
	s.publish(goal, last, start, time.Since(start))
	return nil
}

// publish records that records below goal, with entries up to last, are durable.
func (s *syncer) publish(goal position, last uint64, start time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.durable, s.syncedLast = goal, last
	s.inFlight = time.Time{}
	s.count++
	s.endedAt = start.Add(took)
	s.times.Observe(took)
	s.last, s.longest = took, max(s.longest, took)
	s.recent = max(took, s.recent*7/8)
	s.cond.Broadcast()
	s.maintenance.syncedLocked()
}
