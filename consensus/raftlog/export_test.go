package raftlog

// Settle waits until the maintenance goroutine has done all its work.
func (s *Store) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := func() bool {
		return !s.maintenance.idle || len(s.wake) > 0 || s.maintenance.noted < s.durable
	}
	for s.err == nil && !s.stopping && busy() {
		s.cond.Wait()
	}
}

// RequestDrop asks for a round of dropping, as the end of a prefix deletion does.
func (s *Store) RequestDrop() { s.requestDrop() }

// NewDirectWriter returns a file whose end is written to direct.
func NewDirectWriter(file File, direct DirectFile) File { return newDirectWriter(file, direct) }

// MaxUnwritten bounds what waits in memory.
const MaxUnwritten = maxUnwritten
