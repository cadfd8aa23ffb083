package explore

import (
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// prompt timers model something that takes a moment, not waiting in vain: they may run out
// while messages are under way.
func prompt(timer string) bool { return timer == "leave" || timer == "elect" || timer == "work" }

// choices are the things that can happen next, in a fixed order.
func (s *searcher) choices(w *world) (all []choice) {
	for i := range s.ids {
		for j := range s.ids {
			link := w.links[i*len(s.ids)+j]
			for pos := range link {
				if pos > 0 && !s.config.Reorder {
					break
				}
				all = append(all, choice{kind: deliver, from: i, to: j, pos: pos})
				if w.losses > 0 && !w.down[j] {
					all = append(all, choice{kind: drop, from: i, to: j, pos: pos})
				}
			}
		}
	}
	for pos := range w.pending {
		if s.early(w, s.intern.pending[w.pending[pos]]) {
			continue
		}
		all = append(all, choice{kind: tell, pos: pos})
	}
	for i := range s.ids {
		for _, t := range w.timers[i] {
			if !s.config.Timely || w.inFlight == 0 || prompt(s.intern.timers[t]) {
				all = append(all, choice{kind: fire, from: i, name: t})
			}
		}
		if w.crashes > 0 && !w.down[i] && !s.waiting(w) {
			all = append(all, choice{kind: crash, from: i})
		}
	}
	return all
}

// early reports whether news of a crash may not arrive yet: an accurate detector takes longer
// than the last messages of the crashed process.
func (s *searcher) early(w *world, p pending) bool {
	news, ok := p.command.(election.Suspect)
	if !ok || !s.config.Timely {
		return false
	}
	from := slices.Index(s.ids, news.ID)
	for to := range s.ids {
		if len(w.links[from*len(s.ids)+to]) > 0 {
			return true
		}
	}
	return false
}

// waiting reports whether an election has still to begin: until then no process crashes, or
// there would be none.
func (s *searcher) waiting(w *world) bool {
	return slices.ContainsFunc(w.pending, func(n int) bool {
		_, begins := s.intern.pending[n].command.(election.Elect)
		return begins
	})
}

// apply makes the world in which the choice has happened.
func (s *searcher) apply(before *world, c choice) *world {
	w := before.copied()
	s.watch.chosen(s, w, c)
	switch c.kind {
	case deliver, drop:
		at := c.from*len(s.ids) + c.to
		p := s.intern.packets[w.links[at][c.pos]]
		w.links[at] = slices.Delete(slices.Clone(w.links[at]), c.pos, c.pos+1)
		w.inFlight--
		if c.kind == drop {
			w.losses--
		} else if !w.down[c.to] {
			s.step(w, c.to, sim.Deliver{From: s.ids[c.from], Via: p.via, Message: p.message})
		}
	case fire:
		w.timers[c.from] = slices.DeleteFunc(slices.Clone(w.timers[c.from]), func(t int) bool { return t == c.name })
		s.step(w, c.from, sim.Timeout{Name: s.intern.timers[c.name]})
	case tell:
		p := s.intern.pending[w.pending[c.pos]]
		w.pending = slices.Delete(slices.Clone(w.pending), c.pos, c.pos+1)
		if !w.down[p.to] {
			s.step(w, p.to, p.command)
		}
	case crash:
		w.crashes--
		w.down[c.from], w.timers[c.from] = true, nil
		w.leaders[c.from], w.inside[c.from], w.wants[c.from], w.turns[c.from] = sim.None, false, false, 0
		if s.detects {
			for i, id := range s.ids {
				if i != c.from && id != sim.Service {
					s.pend(w, i, election.Suspect{ID: s.ids[c.from]})
				}
			}
		}
	}
	return w
}

func (s *searcher) pend(w *world, to int, command sim.Event) {
	n := index(&s.intern, "command", &s.intern.pending, pending{to, command})
	at, _ := slices.BinarySearch(w.pending, n)
	w.pending = slices.Insert(slices.Clone(w.pending), at, n)
}

func (s *searcher) step(w *world, i int, event sim.Event) {
	node, out := w.nodes[i].Step(0, event)
	w.nodes[i] = node
	w.node[i] = s.intern.number(node)
	for _, f := range out.Facts {
		s.fact(w, i, f)
		s.watch.noted(s, i, f)
	}
	for _, t := range out.Timers {
		n := index(&s.intern, "timer", &s.intern.timers, t.Name)
		at, set := slices.BinarySearch(w.timers[i], n)
		switch {
		case t.Cancel && set:
			w.timers[i] = slices.Delete(slices.Clone(w.timers[i]), at, at+1)
		case !t.Cancel && !set:
			w.timers[i] = slices.Insert(slices.Clone(w.timers[i]), at, n)
		}
	}
	for _, send := range out.Sends {
		to := s.receiver(w, i, send)
		at := i*len(s.ids) + to
		n := index(&s.intern, "packet", &s.intern.packets, packet{send.Message, send.Via})
		w.links[at] = append(slices.Clip(slices.Clone(w.links[at])), n)
		w.inFlight++
		s.watch.sent(s, i, to, send.Message)
	}
	s.watch.stepped(s, i, node)
}

func (s *searcher) fact(w *world, i int, f sim.Fact) {
	switch f.Name {
	case election.FactLeader:
		leader := f.About
		if leader == sim.Service { // the anonymous "I"
			leader = s.ids[i]
		}
		w.leaders[i], w.terms[i] = leader, f.Number
	case mutex.FactRequest:
		w.wants[i] = true
	case mutex.FactEnter:
		w.wants[i], w.inside[i] = false, true
	case mutex.FactExit:
		w.inside[i] = false
		if w.turns[i] > 0 {
			w.turns[i]--
			s.pend(w, i, mutex.Request{})
		}
	}
}

// receiver finds the receiver of a message: on the ring the next process that is up.
func (s *searcher) receiver(w *world, from int, send sim.Send) int {
	if send.Via == sim.Direct {
		to := slices.Index(s.ids, send.To)
		if to < 0 || to == from {
			panic(fmt.Sprintf("process %v sends to %v", s.ids[from], send.To))
		}
		return to
	}
	step := 1
	if send.Via == sim.CounterClockwise {
		step = len(s.ring) - 1
	}
	at := slices.Index(s.ring, from)
	for range s.ring {
		if at = (at + step) % len(s.ring); !w.down[s.ring[at]] {
			break
		}
	}
	return s.ring[at]
}
