package forward

import (
	"sync"
	"time"
)

// Stats are the statistics of this server's leadership (ZooKeeper's BufferStats and
// Leader.getUptime).
type Stats struct {
	mu                      sync.Mutex // protects the fields below
	last, smallest, largest int64      // bytes; 0: none yet
	since                   time.Time  // when the leadership began
	term                    uint64     // of the last entry
	arrived                 time.Time  // when the first command of the last entry came
}

// Begin starts all statistics afresh, with a leadership.
func (s *Stats) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.smallest, s.largest, s.since = 0, 0, 0, time.Now()
}

// propose counts an entry, none of which is empty, and notes when its first command came.
func (s *Stats) propose(bytes int, term uint64, arrived time.Time) {
	n := int64(bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.arrived = term, arrived
	if s.smallest == 0 || n < s.smallest {
		s.smallest = n
	}
	s.last, s.largest = n, max(s.largest, n)
}

// Arrived returns when the first command of the last entry came that this server has proposed, if its term was this
// one: entries of a term are proposed one after the other.
func (s *Stats) Arrived(term uint64) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived, s.term == term && term != 0
}

// Uptime returns for how long this server has led, if it does.
func (s *Stats) Uptime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return 0
	}
	return time.Since(s.since)
}

// Sizes returns the bytes of the last, the smallest and the largest entry since Begin or ResetSizes; -1
// before the first.
func (s *Stats) Sizes() (last, smallest, largest int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == 0 {
		return -1, -1, -1
	}
	return s.last, s.smallest, s.largest
}

// ResetSizes starts the statistics of Sizes afresh.
func (s *Stats) ResetSizes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.smallest, s.largest = 0, 0, 0
}

// Times say how long an entry took from one stage to the next, as the server sees it that applies it.
type Times struct {
	Index, Term uint64
	// Sent is when the command whose result is delivered was last sent to the leader by this server; zero: it was
	// another server's.
	Sent      time.Time
	Committed time.Time // when this server knew that the entry was committed

	// What only the leader that has proposed the entry knows; Led says so.
	Led      bool
	Arrived  time.Time     // when the first of its commands came to the leader
	Proposed time.Time     // when raft took the entry
	Disk     time.Duration // from then until this server's disk had it, until Committed at most
	Majority time.Duration // from then until a majority had it, which raft counts
}

// Lead fills in what the leader knows. synced is when its disk had the entry; zero: it has not yet.
func (t *Times) Lead(arrived, proposed, synced time.Time) {
	t.Led, t.Arrived, t.Proposed = true, arrived, proposed
	whole := max(t.Committed.Sub(proposed), 0)
	t.Disk = whole
	if !synced.IsZero() {
		t.Disk = min(max(synced.Sub(proposed), 0), whole)
	}
	t.Majority = whole - t.Disk
}
