package sim

import (
	"fmt"
	"time"
)

// send counts a message and decides its fate.
func (s *Simulator) send(from ID, out Send) {
	to := s.resolve(from, out)
	if to == from && out.Via == Direct {
		panic(fmt.Sprintf("process %v sends a message to itself: %v", from, out.Message))
	}
	if s.processes[to] == nil {
		panic(fmt.Sprintf("process %v sends to %v, which does not exist", from, to))
	}
	kind := out.Message.Type()
	s.counts[kind]++
	s.messages++
	it := item{class: classMessage, to: to, from: from, via: out.Via, msg: out.Message,
		number: s.messages, sentAt: s.now}
	_, quiet := out.Message.(Background)
	s.record(Record{Kind: Sent, Process: from, Peer: to, SentAt: s.now, Message: it.number,
		Type: kind, Label: out.Message.String(), Quiet: quiet})
	// The draws are made in any case, so that scripting one loss does not shift the randomness
	// of every later message.
	delay := s.drawDelay(from, to)
	for _, l := range s.config.Network.Late {
		if l.Type == kind && l.K == s.counts[kind] {
			delay = l.Delay
		}
	}
	lost := s.config.Network.Loss > 0 && s.random.Float64() < s.config.Network.Loss
	twice := s.config.Network.Duplication > 0 &&
		s.random.Float64() < s.config.Network.Duplication
	if s.config.Network.Sessions && (from == Service || to == Service) {
		lost, twice = false, false // late, never lossy
	}
	lost = lost || matches(s.config.Network.Drop, kind, s.counts[kind])
	twice = twice || matches(s.config.Network.Duplicate, kind, s.counts[kind])
	switch {
	case s.separated(from, to):
		s.lose(it, "partition", s.now+delay)
	case lost:
		s.lose(it, "lost", s.now+delay)
	default:
		s.enqueue(it, delay)
		if twice {
			s.enqueue(it, s.drawDelay(from, to))
		}
	}
}

func (s *Simulator) enqueue(it item, delay time.Duration) {
	it.at = s.now + delay
	if _, quiet := it.msg.(Background); !quiet {
		s.inFlight++
	}
	if !s.config.Network.Reorder && s.config.Network.Delay.Min != s.config.Network.Delay.Max {
		// With a constant delay per link order keeps itself, and a map entry
		// for each of n*n links is saved.
		key := link{it.from, it.to}
		it.at = max(it.at, s.lastHeard[key])
		s.lastHeard[key] = it.at
	}
	s.push(it)
}

func matches(script []Nth, kind string, k int) bool {
	for _, n := range script {
		if n.Type == kind && n.K == k {
			return true
		}
	}
	return false
}

func (s *Simulator) drawDelay(from, to ID) time.Duration {
	d := s.config.Network.Delay
	drawn := d.Min
	if d.Max > d.Min {
		drawn += time.Duration(s.random.Int64N(int64((d.Max-d.Min)/grain)+1)) * grain
	}
	for _, slow := range s.config.Network.Slow {
		if slow.From == from && slow.To == to {
			return slow.Delay
		}
	}
	return drawn
}

// resolve finds the receiver. On a ring route it is the neighbour or, in a
// repaired ring, the nearest live process on that side, which may be the sender
// itself when it is the only one left.
func (s *Simulator) resolve(from ID, out Send) ID {
	if out.Via == Direct {
		return out.To
	}
	step := 1
	if out.Via == CounterClockwise {
		step = len(s.ring) - 1
	}
	at := s.place[from]
	for range s.ring {
		at = (at + step) % len(s.ring)
		if s.config.Network.StaticRing || !s.processes[s.ring[at]].down {
			break
		}
	}
	return s.ring[at]
}

func (s *Simulator) separated(a, b ID) bool {
	for _, p := range s.config.Network.Partitions {
		if p.separates(a, b, s.now) {
			return true
		}
	}
	return false
}
