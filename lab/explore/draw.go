package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// watcher observes the events of a step.
type watcher interface {
	chosen(s *searcher, w *world, c choice)
	noted(s *searcher, i int, f sim.Fact)
	sent(s *searcher, from, to int, m sim.Message)
	stepped(s *searcher, i int, node sim.Node)
}

// silent watches nothing: most steps are of no interest.
type silent struct{}

func (silent) chosen(*searcher, *world, choice)      {}
func (silent) noted(*searcher, int, sim.Fact)        {}
func (silent) sent(*searcher, int, int, sim.Message) {}
func (silent) stepped(*searcher, int, sim.Node)      {}

// recorder writes the records of one run, one step a unit.
type recorder struct {
	now     time.Duration
	records []sim.Record
	number  int
	links   map[[2]int][]underWay
	shown   map[string]string
	counts  map[string]int
}

// underWay is a message that was sent.
type underWay struct {
	number int
	sentAt time.Duration
}

func (r *recorder) add(s *searcher, i int, record sim.Record) {
	record.At, record.Process = r.now, s.ids[i]
	r.records = append(r.records, record)
}

func (r *recorder) chosen(s *searcher, w *world, c choice) {
	r.now += sim.Unit
	switch c.kind {
	case deliver, drop:
		link := [2]int{c.from, c.to}
		m := r.links[link][c.pos]
		r.links[link] = slices.Delete(slices.Clone(r.links[link]), c.pos, c.pos+1)
		p := s.intern.packets[w.links[c.from*len(s.ids)+c.to][c.pos]]
		record := sim.Record{Kind: sim.Delivered, Peer: s.ids[c.from], SentAt: m.sentAt, Message: m.number,
			Type: p.message.Type(), Label: p.message.String(), Due: r.now}
		if c.kind == deliver && !w.down[c.to] {
			r.add(s, c.to, record)
			return
		}
		record.Kind, record.Peer = sim.Lost, s.ids[c.to]
		record.Label += map[bool]string{true: ": lost", false: ": receiver down"}[c.kind == drop]
		r.add(s, c.from, record)
	case fire:
		r.add(s, c.from, sim.Record{Kind: sim.TimedOut, Peer: sim.None, Type: s.intern.timers[c.name]})
	case tell:
		p := s.intern.pending[w.pending[c.pos]]
		if !w.down[p.to] {
			r.add(s, p.to, sim.Record{Kind: sim.Told, Peer: sim.None, Label: fmt.Sprint(p.command)})
		}
	case crash:
		r.add(s, c.from, sim.Record{Kind: sim.Crashed, Peer: sim.None})
	}
}

func (r *recorder) noted(s *searcher, i int, f sim.Fact) {
	r.add(s, i, sim.Record{Kind: sim.Noted, Peer: sim.None, Fact: f})
}

func (r *recorder) sent(s *searcher, from, to int, m sim.Message) {
	r.number++
	r.counts[m.Type()]++
	link := [2]int{from, to}
	r.links[link] = append(r.links[link], underWay{r.number, r.now})
	r.add(s, from, sim.Record{Kind: sim.Sent, Peer: s.ids[to], SentAt: r.now, Message: r.number, Type: m.Type(),
		Label: m.String()})
}

func (r *recorder) stepped(s *searcher, i int, node sim.Node) {
	shower, ok := node.(sim.Shower)
	if !ok {
		return
	}
	var changed []sim.Variable
	for _, v := range shower.Show() {
		key := fmt.Sprint(i, v.Name)
		if old, known := r.shown[key]; !known || old != v.Value {
			r.shown[key] = v.Value
			changed = append(changed, v)
		}
	}
	if changed != nil {
		r.add(s, i, sim.Record{Kind: sim.Changed, Peer: sim.None, Variables: changed})
	}
}

// draw repeats the shortest run to the requested state, or else to the first violation, or else
// to the last state reached, with its records.
func (s *searcher) draw(r *Result, find string, first *world) {
	target, endless := len(s.states)-1, false
	for _, f := range slices.Backward(r.Found) {
		if find == "" || f.Kind == find {
			target, endless = f.state, f.Kind == Endless
		}
	}
	var path []choice
	for at := target; s.states[at].parent >= 0; at = s.states[at].parent {
		path = append(path, s.states[at].by)
	}
	slices.Reverse(path)
	rec := &recorder{links: map[[2]int][]underWay{}, shown: map[string]string{}, counts: map[string]int{}}
	again := *s
	again.watch = rec
	// The first world's own steps are repeated, so that their messages have numbers.
	w := first.copied()
	for i := range s.ids {
		rec.restart(&again, w, i)
	}
	for _, c := range path {
		w = again.apply(w, c)
	}
	steps, broken := float64(len(path)), rec.now
	for range 3 * len(s.ids) { // a part of the endless run
		next := slices.DeleteFunc(s.choices(w), func(c choice) bool { return c.kind == crash || c.kind == drop })
		if !endless || len(next) == 0 {
			break
		}
		w = again.apply(w, next[0])
		steps++
	}
	r.Time, r.Records, r.Messages = &steps, rec.records, sim.Tally(rec.counts)
	r.Safe, r.Live = true, true
	for _, f := range r.Found {
		switch f.Kind {
		case NoLeader, Deadlock, Endless:
			r.Live = false
		default:
			r.Safe = false
		}
		if f.state == target {
			r.Violations = append(r.Violations, sim.Violation{At: broken, Text: f.Text})
		}
	}
}

// restart records what a process sent and showed when it started.
func (r *recorder) restart(s *searcher, w *world, i int) {
	for j := range s.ids {
		for _, p := range w.links[i*len(s.ids)+j] {
			r.sent(s, i, j, s.intern.packets[p].message)
		}
	}
	r.stepped(s, i, w.nodes[i])
}
