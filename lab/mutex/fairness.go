package mutex

import (
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// fairness observes a run and judges it by the two rules of the lectures: entries are granted
// in the order of the requests, if one happened before the other; and no process enters twice
// while another waits.
//
// Whether a request happened before another is known to the processes: each carries the number
// of the latest request that it has heard of from each process, over any chain of messages.
// These lists are shared between messages and never changed.
type fairness struct {
	place map[sim.ID]int // of those that ask
	knows map[sim.ID][]int
	sent  map[int][]int // by message
	asked map[sim.ID]*request

	outOfOrder int
	twice      int
	examples   []sim.Violation
}

// request is one that waits.
type request struct {
	id      sim.ID
	number  int            // of its process, from 1
	before  []int          // the requests that its process had heard of at that time
	entered map[sim.ID]int // how often others have entered since
}

func newFairness(requesters []sim.ID) *fairness {
	f := &fairness{place: map[sim.ID]int{}, knows: map[sim.ID][]int{}, sent: map[int][]int{},
		asked: map[sim.ID]*request{}}
	for i, id := range requesters {
		f.place[id] = i
	}
	return f
}

// Observe implements sim.Observer.
func (f *fairness) Observe(r sim.Record) {
	switch r.Kind {
	case sim.Sent:
		if known := f.knows[r.Process]; known != nil {
			f.sent[r.Message] = known
		}
	case sim.Delivered:
		f.knows[r.Process] = merged(f.knows[r.Process], f.sent[r.Message])
	case sim.Crashed:
		delete(f.asked, r.Process)
	case sim.Noted:
		switch r.Fact.Name {
		case FactRequest:
			f.request(r.Process)
		case FactEnter:
			f.enter(r)
		}
	}
}

// merged returns the later number for each process. It is one of the two whenever it can be.
func merged(a, b []int) []int {
	if b == nil || a != nil && &a[0] == &b[0] {
		return a
	}
	if a == nil {
		return b
	}
	var both []int
	for i := range a {
		if b[i] > a[i] {
			if both == nil {
				both = slices.Clone(a)
			}
			both[i] = b[i]
		}
	}
	if both == nil {
		return a
	}
	return both
}

func (f *fairness) request(id sim.ID) {
	known := slices.Clone(f.knows[id])
	if known == nil {
		known = make([]int, len(f.place))
	}
	f.asked[id] = &request{id: id, number: known[f.place[id]] + 1, before: f.knows[id],
		entered: map[sim.ID]int{}}
	known[f.place[id]]++
	f.knows[id] = known
}

func (f *fairness) enter(r sim.Record) {
	mine := f.asked[r.Process]
	delete(f.asked, r.Process)
	overtaken, starved := sim.None, sim.None
	for id, other := range f.asked {
		if mine != nil && mine.before != nil && mine.before[f.place[id]] >= other.number {
			overtaken = lower(overtaken, id)
		}
		other.entered[r.Process]++
		if other.entered[r.Process] > 1 {
			starved = lower(starved, id)
		}
	}
	if overtaken != sim.None {
		f.outOfOrder++
		f.example(r, fmt.Sprintf("%v enters before %v, whose request happened before its own", r.Process, overtaken))
	}
	if starved != sim.None {
		f.twice++
		f.example(r, fmt.Sprintf("%v enters again while %v has waited since before its last entry", r.Process, starved))
	}
}

// lower makes the choice of the reported process independent of the order of a map.
func lower(a, b sim.ID) sim.ID {
	if a == sim.None {
		return b
	}
	return min(a, b)
}

func (f *fairness) example(r sim.Record, text string) {
	if len(f.examples) < maxViolations {
		f.examples = append(f.examples, sim.Violation{At: r.At, Text: text})
	}
}
