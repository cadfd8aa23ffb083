package explore

import (
	"slices"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// good reports whether all is well: all processes that are up hold a leader, or one leads where
// the others need not know; none waits for a lock.
func (s *searcher) good(w *world) bool {
	if s.config.Election == nil {
		for i := range s.ids {
			if w.wants[i] && !w.down[i] {
				return false
			}
		}
		return true
	}
	if !s.informs {
		return len(s.leading(w)) > 0
	}
	for i, id := range s.ids {
		if id != sim.Service && !w.down[i] && w.leaders[i] == sim.None {
			return false
		}
	}
	return true
}

// endless finds, when everything has been explored, the states from which no order without
// another fault leads to one where all is well, or where nothing more can happen.
func (s *searcher) endless(found map[string]*Found) {
	before := make([][]int32, len(s.after))
	var reached []int32
	can := slices.Clone(s.well)
	for at, next := range s.after {
		for _, to := range next {
			before[to] = append(before[to], int32(at))
		}
		if can[at] {
			reached = append(reached, int32(at))
		}
	}
	for len(reached) > 0 {
		last := reached[len(reached)-1]
		reached = reached[:len(reached)-1]
		for _, at := range before[last] {
			if !can[at] {
				can[at] = true
				reached = append(reached, at)
			}
		}
	}
	text := "it goes on for ever, and nobody will lead"
	if s.config.Mutex != nil {
		text = "it goes on for ever, and somebody will always wait"
	}
	for at := range can {
		if !can[at] {
			s.note(found, at, [2]string{Endless, text})
		}
	}
}
