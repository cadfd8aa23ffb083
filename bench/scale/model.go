package scale

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// costs are what three servers and the clients' side of a load need, by CPU time of this machine.
type costs struct {
	Entry time.Duration `json:"entry_ns"` // of all servers, for an entry of the log, beside its commands
	Step  time.Duration `json:"step_ns"`  // that an entry waits for disks and wake-ups, beside CPU time

	Single kinds `json:"single"` // of a client that has one request under way
	Piped  kinds `json:"piped"`  // of one that sends many together

	Leader float64 `json:"leader_share"` // of the servers' CPU time under writes, 0 to 1
}

// kinds are CPU times for a request, at all servers and at its client.
type kinds struct {
	Write       time.Duration `json:"write_ns"`
	Read        time.Duration `json:"read_ns"`
	WriteClient time.Duration `json:"write_client_ns"`
	ReadClient  time.Duration `json:"read_client_ns"`
}

// workload is a closed loop: so many connections with so many requests under way each.
type workload struct {
	Connections int     `json:"connections"`
	InFlight    int     `json:"in_flight"`
	Writes      float64 `json:"writes"` // share, 0 to 1
}

// of returns what its requests need.
func (w *workload) of(c *costs) *kinds {
	if w.InFlight > 1 {
		return &c.Piped
	}
	return &c.Single
}

// mostCommands is the most that an entry holds (consensus/forward).
const mostCommands = 2048

// outcome is what a simulation comes to, or a measurement.
type outcome struct {
	PerSecond float64       `json:"per_second"`
	P50       time.Duration `json:"p50_ns"`
	PerEntry  float64       `json:"commands_per_entry"`
}

// event is what happens at a moment of the simulation.
type event struct {
	at    time.Duration
	what  func(now time.Duration)
	order int // of events at the same moment
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].order, e[j].order)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// simulation is an ensemble and its clients on one machine, in virtual time. Processors take what there is to do first
// come, first served.
type simulation struct {
	c     *costs
	w     *workload
	cores []time.Duration // when each processor is free
	queue events
	count int

	pending  []time.Duration // writes that wait for an entry, by when they were sent
	underWay bool            // an entry is

	sent, answered, entries, commands int
	latencies                         []time.Duration
}

// simulate runs a workload for so long on so many processors. It is deterministic.
func (c *costs) simulate(w workload, cores int, long time.Duration) outcome {
	s := &simulation{c: c, w: &w, cores: make([]time.Duration, cores)}
	for range w.Connections * w.InFlight {
		s.send(0)
	}
	warm := long / 4
	for len(s.queue) > 0 && s.queue[0].at < warm+long {
		next := heap.Pop(&s.queue).(event)
		if next.at >= warm && s.latencies == nil {
			s.answered, s.entries, s.commands, s.latencies = 0, 0, 0, []time.Duration{}
		}
		next.what(next.at)
	}
	slices.Sort(s.latencies)
	o := outcome{PerSecond: float64(s.answered) / long.Seconds()}
	if n := len(s.latencies); n > 0 {
		o.P50 = s.latencies[n/2]
	}
	if s.entries > 0 {
		o.PerEntry = float64(s.commands) / float64(s.entries)
	}
	return o
}

func (s *simulation) at(t time.Duration, what func(now time.Duration)) {
	s.count++
	heap.Push(&s.queue, event{t, what, s.count})
}

// work has a processor do something, and then goes on.
func (s *simulation) work(now, long time.Duration, then func(now time.Duration)) {
	first := 0
	for i := range s.cores {
		if s.cores[i] < s.cores[first] {
			first = i
		}
	}
	s.cores[first] = max(s.cores[first], now) + long
	s.at(s.cores[first], then)
}

// send sends the next request. Writes are spread evenly over all.
func (s *simulation) send(sent time.Duration) {
	k := s.w.of(s.c)
	before := int(float64(s.sent) * s.w.Writes)
	if s.sent++; int(float64(s.sent)*s.w.Writes) == before {
		s.work(sent, k.Read+k.ReadClient, func(now time.Duration) { s.answer(sent, now) })
		return
	}
	s.work(sent, k.Write+k.WriteClient, func(now time.Duration) {
		s.pending = append(s.pending, sent)
		s.enter(now)
	})
}

func (s *simulation) answer(sent, now time.Duration) {
	s.answered++
	if s.latencies != nil {
		s.latencies = append(s.latencies, now-sent)
	}
	s.send(now)
}

// enter begins an entry with all that waits, when the one before is committed: the leader's part, then those of two
// followers, while the disks sync.
func (s *simulation) enter(now time.Duration) {
	if s.underWay || len(s.pending) == 0 {
		return
	}
	s.underWay = true
	took := s.pending[:min(len(s.pending), mostCommands)]
	s.pending = slices.Clone(s.pending[len(took):])
	s.entries++
	s.commands += len(took)
	leader := time.Duration(float64(s.c.Entry) * s.c.Leader)
	s.work(now, leader, func(now time.Duration) {
		left := 2
		for range left {
			s.work(now, (s.c.Entry-leader)/2, func(now time.Duration) {
				if left--; left == 0 {
					s.at(now+s.c.Step, func(now time.Duration) { s.commit(now, took) })
				}
			})
		}
	})
}

func (s *simulation) commit(now time.Duration, took []time.Duration) {
	s.underWay = false
	for _, sent := range took {
		s.answer(sent, now)
	}
	s.enter(now)
}
