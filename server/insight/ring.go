package insight

// ring keeps the newest items, which are numbered from 1 on.
type ring[T any] struct {
	items []T
	last  uint64 // number of the newest
}

func (r *ring[T]) add(x T) {
	if len(r.items) < keepSlow {
		r.items = append(r.items, x)
	} else {
		r.items[r.last%keepSlow] = x
	}
	r.last++
}

// page returns at most so many items with a number below before (0: all), the newest first.
func (r *ring[T]) page(before uint64, limit int) []T {
	newest := r.last
	if before > 0 {
		newest = min(newest, before-1)
	}
	oldest := r.last - uint64(len(r.items)) // those up to it have gone
	var out []T
	for n := newest; n > oldest && len(out) < limit; n-- {
		out = append(out, r.items[(n-1)%keepSlow])
	}
	return out
}
