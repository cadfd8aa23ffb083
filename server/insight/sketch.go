package insight

// sketch counts the most frequent keys in a stream of any number of them (Metwally, Agrawal, El Abbadi: Efficient
// Computation of Frequent and Top-k Elements in Data Streams, 2005; "Space-Saving"). A new key takes over the smallest
// counter, so a count is never too small, and too large by that counter's value at most.
type sketch[K comparable] struct {
	at       map[K]int // index of a key's counter
	counters []counter[K]
}

type counter[K comparable] struct {
	key   K
	count int64
	over  int64 // what count may be too large by
}

func (s *sketch[K]) add(key K, n int64) {
	if i, ok := s.at[key]; ok {
		s.counters[i].count += n
		return
	}
	if s.at == nil {
		s.at = make(map[K]int, sketchSize)
	}
	if len(s.counters) < sketchSize {
		s.at[key] = len(s.counters)
		s.counters = append(s.counters, counter[K]{key, n, 0})
		return
	}
	least := s.least()
	c := &s.counters[least]
	delete(s.at, c.key)
	s.at[key] = least
	*c = counter[K]{key, c.count + n, c.count}
}

// of returns what a key has at most, and by how much that may be too large.
func (s *sketch[K]) of(key K) counter[K] {
	if i, ok := s.at[key]; ok {
		return s.counters[i]
	}
	if len(s.counters) < sketchSize {
		return counter[K]{key: key}
	}
	n := s.counters[s.least()].count
	return counter[K]{key, n, n}
}

// least is the index of the smallest counter.
func (s *sketch[K]) least() (least int) {
	for i := range s.counters {
		if s.counters[i].count < s.counters[least].count {
			least = i
		}
	}
	return least
}
