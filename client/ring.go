package client

// ring is the queue of operations in the order of their submission. Every place
// has a number that stays with the operation while others come and go:
// first is that of the oldest. The client's mutex protects it.
type ring struct {
	buf   []operation // Invariant: len(buf) is 0 or a power of two
	head  int
	n     int
	first uint64
}

func (q *ring) end() uint64 { return q.first + uint64(q.n) }

func (q *ring) at(i int) operation { return q.buf[(q.head+i)&(len(q.buf)-1)] }

func (q *ring) push(op operation) {
	q.grow()
	q.buf[(q.head+q.n)&(len(q.buf)-1)] = op
	q.n++
}

func (q *ring) pop() operation {
	op := q.buf[q.head]
	q.buf[q.head] = nil
	q.head = (q.head + 1) & (len(q.buf) - 1)
	q.n--
	q.first++
	return op
}

// remove takes out the operation whose base is p and reports whether it was
// there. The numbers of those behind it change.
func (q *ring) remove(p *call) bool {
	for i := 0; i < q.n; i++ {
		if q.at(i).base() != p {
			continue
		}
		for ; i+1 < q.n; i++ {
			q.buf[(q.head+i)&(len(q.buf)-1)] = q.at(i + 1)
		}
		q.buf[(q.head+q.n-1)&(len(q.buf)-1)] = nil
		q.n--
		return true
	}
	return false
}

func (q *ring) grow() {
	if q.n < len(q.buf) {
		return
	}
	buf := make([]operation, max(16, 2*len(q.buf)))
	for i := range q.n {
		buf[i] = q.at(i)
	}
	q.buf, q.head = buf, 0
}
