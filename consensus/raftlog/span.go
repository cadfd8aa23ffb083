package raftlog

import "fmt"

// span is the range of indexes in the log, both ends included; the zero value is the empty log.
// Writer and recovery both follow the log by apply, so they cannot disagree.
type span struct{ first, last uint64 }

func (s span) empty() bool { return s.last == 0 }

func (s span) contains(i uint64) bool { return !s.empty() && s.first <= i && i <= s.last }

// apply returns the span after r, or an error if r cannot follow.
func (s span) apply(r *record) (span, error) {
	i := r.entry.Index
	switch r.kind {
	case kindEntry:
		if i == 0 || !s.empty() && i != s.last+1 {
			return s, fmt.Errorf("entry %d follows entry %d", i, s.last)
		}
		if s.empty() {
			s.first = i
		}
		s.last = i
	case kindSuffix:
		if !s.contains(i) || i == s.first {
			return s, fmt.Errorf("suffix deletion from %d in a log %d-%d", i, s.first, s.last)
		}
		s.last = i - 1
	case kindPrefix:
		if !s.contains(i) {
			return s, fmt.Errorf("prefix deletion below %d in a log %d-%d", i, s.first, s.last)
		}
		s.first = i
	case kindReset:
		return span{}, nil
	case kindStart:
		if from := (span{i, r.entry.Term}); from != s {
			return s, fmt.Errorf("segment starts with log %d-%d, the one before ends with %d-%d",
				from.first, from.last, s.first, s.last)
		}
	case kindSeal, kindOpen:
	}
	return s, nil
}
