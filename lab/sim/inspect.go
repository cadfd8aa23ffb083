package sim

import (
	"fmt"
	"maps"
	"reflect"
	"time"
)

// checkPure repeats a step. The two results must be equal, which they are not
// if the first call changed the state it was given.
func (s *Simulator) checkPure(id ID, before Node, event Event, after Node, out Output) {
	shown := fmt.Sprintf("%+v", after)
	again, outAgain := before.Step(s.now, event)
	if !reflect.DeepEqual(after, again) || !reflect.DeepEqual(out, outAgain) ||
		shown != fmt.Sprintf("%+v", after) {
		panic(fmt.Sprintf("step of %v on %T %+v is not a pure function", id, event, event))
	}
}

// show records the variables of a process that are not as they were.
func (s *Simulator) show(id ID, p *process) {
	shower, ok := p.node.(Shower)
	if !ok {
		return
	}
	if p.shown == nil {
		p.shown = map[string]string{}
	}
	var changed []Variable
	for _, v := range shower.Show() {
		if old, known := p.shown[v.Name]; !known || old != v.Value {
			changed = append(changed, v)
			p.shown[v.Name] = v.Value
		}
	}
	if changed != nil {
		s.record(Record{Kind: Changed, Process: id, Peer: None, Variables: changed})
	}
}

// Now returns the virtual time of the latest event.
func (s *Simulator) Now() time.Duration { return s.now }

// Limit returns when a run that did not end of its own accord was cut off.
func (s *Simulator) Limit() time.Duration {
	if s.config.MaxTime > 0 && s.events < s.config.MaxEvents {
		return s.config.MaxTime
	}
	return s.now
}

// LastWork returns when the last message that is not Background was delivered.
func (s *Simulator) LastWork() time.Duration { return s.lastWork }

// Working reports whether a message that is not Background is under way.
func (s *Simulator) Working() bool { return s.inFlight > 0 }

// Pending reports whether scheduled faults or commands are still to happen.
func (s *Simulator) Pending() bool { return s.faults > 0 }

// Counts returns how many messages of each type were sent. Messages to crashed
// processes and lost messages count: they cost the sender as much. Copies made
// by the network do not.
func (s *Simulator) Counts() map[string]int { return maps.Clone(s.counts) }

// Messages counts the sent messages: Total is the sum of ByType.
type Messages struct {
	Total  int            `json:"total"`
	ByType map[string]int `json:"by_type"`
}

// Tally adds up counts by type.
func Tally(counts map[string]int) Messages {
	m := Messages{ByType: counts}
	for _, k := range counts {
		m.Total += k
	}
	return m
}

// LostCount returns how many messages, or copies of them, did not arrive.
func (s *Simulator) LostCount() int { return s.lost }

// Up reports whether the process is up.
func (s *Simulator) Up(id ID) bool { return !s.processes[id].down }

// Node returns the present state of a process.
func (s *Simulator) Node(id ID) Node { return s.processes[id].node }

// Ring returns the processes clockwise, without the Service.
func (s *Simulator) Ring() []ID { return append([]ID(nil), s.ring...) }

// Records returns the kept records, and whether some had to be left out.
func (s *Simulator) Records() ([]Record, bool) { return s.records, s.truncated }

// Bound returns the longest time a message can take, the bound T of the timed algorithms. Slow
// links may break it: that is their purpose.
func (s *Simulator) Bound() time.Duration { return s.config.Network.Delay.Max }
