// Package journal keeps the newest records of a kind in memory, for readers that fetch them page by page and for a
// log that reports each of them once. It logs nothing itself, starts no goroutine and has no lock.
package journal

// Journal keeps the newest records, which are numbered from 1 on. Use New. It is not safe for concurrent use.
type Journal[T any] struct {
	keep    int
	records []T    // record n is at (n-1) % keep
	last    uint64 // number of the newest
	fresh   uint64 // number of the first that Fresh has not returned
}

// New returns an empty Journal for at most keep records.
func New[T any](keep int) Journal[T] { return Journal[T]{keep: keep, fresh: 1} }

// Last returns the number of the newest record, which is how many have been added.
func (j *Journal[T]) Last() uint64 { return j.last }

// Add adds a record, whose number is Last()+1, in the place of the oldest if there is no other.
func (j *Journal[T]) Add(x T) {
	if len(j.records) < j.keep {
		j.records = append(j.records, x)
	} else {
		j.records[j.last%uint64(j.keep)] = x
	}
	j.last++
}

// Page returns the newest records with a number below before (0: of all), at most limit of them, the newest first.
func (j *Journal[T]) Page(before uint64, limit int) (page []T) {
	newest := j.last
	if before > 0 {
		newest = min(newest, before-1)
	}
	oldest := j.last - uint64(len(j.records)) // those up to it have been dropped
	for n := newest; n > oldest && len(page) < limit; n-- {
		page = append(page, j.records[(n-1)%uint64(j.keep)])
	}
	return page
}

// Fresh returns the records that were added since the last call, the newest first.
func (j *Journal[T]) Fresh() []T {
	n := min(j.last+1-j.fresh, uint64(len(j.records)))
	j.fresh = j.last + 1
	return j.Page(0, int(n))
}
