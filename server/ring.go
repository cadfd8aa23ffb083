package server

// request is one Op in a Conn's queue.
type request struct {
	op     Op
	write  bool
	weight int // bytes; see Op.Weight
}

// ring is a queue of requests that keeps its array.
type ring struct {
	items []request
	head  int
	count int
	bytes int // weights of all
}

func (q *ring) len() int { return q.count }

func (q *ring) push(r request) {
	if q.count == len(q.items) {
		grown := make([]request, max(4, 2*q.count))
		for i := range q.count {
			grown[i] = q.items[(q.head+i)%len(q.items)]
		}
		q.items, q.head = grown, 0
	}
	q.items[(q.head+q.count)%len(q.items)] = r
	q.count++
	q.bytes += r.weight
}

func (q *ring) pop() (request, bool) {
	if q.count == 0 {
		return request{}, false
	}
	r := q.items[q.head]
	q.items[q.head] = request{}
	q.head = (q.head + 1) % len(q.items)
	q.count--
	q.bytes -= r.weight
	return r, true
}

// popRead takes the head if it is a read.
func (q *ring) popRead() (request, bool) {
	if q.count == 0 || q.items[q.head].write {
		return request{}, false
	}
	return q.pop()
}
