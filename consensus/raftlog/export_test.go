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
