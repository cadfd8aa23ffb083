package sim

import "time"

// Classes order events at the same instant: faults first, then deliveries, then commands, then
// timers. A message that arrives exactly when the timeout waiting for it expires is therefore
// in time, which lets a timeout be set to exactly two transmission times.
const (
	classFault = iota
	classMessage
	classCommand
	classTimer
)

// item is one entry of the event queue. Nearly all are messages, a million at a time: what the others have lies
// elsewhere.
type item struct {
	at     time.Duration
	class  uint8
	seq    uint64
	to     ID
	from   ID
	via    Route
	msg    Message
	number int
	sentAt time.Duration
	*other
}

// other is what an item has that is no message.
type other struct {
	fault Fault
	event Event
	timer string
	life  int    // incarnation of the process for which a timer was set
	set   uint64 // which arming of the timer
}

// queue is a binary min-heap by (at, class, seq). It is bounded by
// Config.MaxEvents, since every item popped counts as an event and every push
// is checked against it.
type queue struct{ items []item }

func (q *queue) before(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.class != b.class {
		return a.class < b.class
	}
	return a.seq < b.seq
}

func (q *queue) push(it item) {
	q.items = append(q.items, it)
	for i := len(q.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			break
		}
		q.items[i], q.items[parent] = q.items[parent], q.items[i]
		i = parent
	}
}

func (q *queue) pop() item {
	top := q.items[0]
	last := len(q.items) - 1
	q.items[0] = q.items[last]
	q.items[last] = item{}
	q.items = q.items[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && q.before(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		q.items[i], q.items[least] = q.items[least], q.items[i]
		i = least
	}
}
