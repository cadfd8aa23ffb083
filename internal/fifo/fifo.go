// Package fifo is a queue that keeps its array.
package fifo

// Queue is a queue, first in, first out. The zero value is empty and ready for use. Every element has a number that
// does not change while others come and go: that of the oldest is First, the next one pushed gets End. It is not safe
// for concurrent use.
type Queue[T any] struct {
	items []T // a ring. Invariant: its length is 0 or a power of two
	head  int
	n     int
	first uint64
}

// Len returns how many elements there are.
func (q *Queue[T]) Len() int { return q.n }

// First returns the number of the oldest element.
func (q *Queue[T]) First() uint64 { return q.first }

// End returns the number after that of the newest element.
func (q *Queue[T]) End() uint64 { return q.first + uint64(q.n) }

// At returns the element with i older ones before it.
func (q *Queue[T]) At(i int) T { return q.items[q.index(i)] }

func (q *Queue[T]) index(i int) int { return (q.head + i) & (len(q.items) - 1) }

// Push adds an element.
func (q *Queue[T]) Push(x T) {
	if q.n == len(q.items) {
		items := make([]T, max(4, 2*q.n))
		for i := range q.n {
			items[i] = q.At(i)
		}
		q.items, q.head = items, 0
	}
	q.items[q.index(q.n)] = x
	q.n++
}

// Pop removes and returns the oldest element, of which there must be one.
func (q *Queue[T]) Pop() T {
	var none T
	x := q.items[q.head]
	q.items[q.head] = none
	q.head = q.index(1)
	q.n--
	q.first++
	return x
}

// Delete removes the element with i older ones before it. The numbers of the newer ones fall by one.
func (q *Queue[T]) Delete(i int) {
	for ; i+1 < q.n; i++ {
		q.items[q.index(i)] = q.At(i + 1)
	}
	var none T
	q.items[q.index(i)] = none
	q.n--
}
