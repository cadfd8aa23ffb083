package raftlog

import "sync/atomic"

// Settle waits until the maintenance goroutine has done all its work.
func (s *Store) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	// That goroutine counts as idle until it has begun: what it was asked for counts, too.
	busy := func() bool {
		m := s.maintenance
		asked := m.wantDrop || m.wantSegment && len(s.prepared) == 0 || m.noted < s.durable
		return asked || !m.idle || len(m.wakeup) > 0
	}
	for s.err == nil && !s.syncer.stopping && busy() {
		s.cond.Wait()
	}
}

// RequestDrop asks for a round of dropping, as the end of a prefix deletion does.
func (s *Store) RequestDrop() { s.maintenance.requestDrop() }

// NewDirectWriter returns a file whose end is written to direct.
func NewDirectWriter(file File, direct DirectFile) File {
	return newDirectWriter(file, direct, new(atomic.Bool))
}

// MaxUnwritten bounds what waits in memory.
const MaxUnwritten = maxUnwritten
