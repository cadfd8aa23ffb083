package raftlog

// Settle waits until the keeper has done everything it was asked for.
func (s *Store) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := func() bool {
		return !s.keeper.idle || len(s.kick) > 0 || s.keeper.noted < s.durable
	}
	for s.err == nil && !s.stopping && busy() {
		s.cond.Wait()
	}
}

// RequestDrop asks the keeper for a round of dropping, as the end of a prefix deletion does.
func (s *Store) RequestDrop() { s.requestDrop() }

// NewTail returns a file whose end is written to direct.
func NewTail(file File, direct DirectFile) File { return newTail(file, direct) }

// MaxTail is how much waits in memory.
const MaxTail = maxTail
