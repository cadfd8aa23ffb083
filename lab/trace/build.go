package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Add fills in the steps, messages and spans from a run's records. end is the time at
// which spans end that are still open.
func (t *Trace) Add(records []sim.Record, end time.Duration) {
	b := builder{trace: t, byNumber: map[int]int{}, types: map[string]int{}, timers: map[sim.ID][]string{}}
	for _, r := range records {
		b.record(r)
	}
	t.Spans = append(t.Spans, Spans(records, end)...)
}

type builder struct {
	trace    *Trace
	byNumber map[int]int // place of the original message
	types    map[string]int
	timers   map[sim.ID][]string
	sent     int
}

func (b *builder) record(r sim.Record) {
	switch r.Kind {
	case sim.Told:
		b.open(r, fmt.Sprintf("%v %s", r.Process, r.Label))
	case sim.Delivered:
		s := b.open(r, fmt.Sprintf("%v to %v: %s", r.Peer, r.Process, r.Label))
		s.Message = b.arrive(r)
	case sim.Lost:
		b.lose(r)
	case sim.TimedOut:
		s := b.open(r, fmt.Sprintf("%v: timer %q runs out", r.Process, r.Type))
		s.Quiet = Upkeep(r.Type)
		b.disarm(s, r.Process, r.Type)
	case sim.Crashed:
		s := b.open(r, fmt.Sprintf("%v crashes", r.Process))
		s.Status = "down"
		for _, name := range slices.Clone(b.timers[r.Process]) {
			b.disarm(s, r.Process, name)
		}
	case sim.Recovered:
		b.open(r, fmt.Sprintf("%v recovers", r.Process)).Status = "-"
	default:
		b.caused(r)
	}
}

// caused adds the consequences of a step to that step; the first one of a process has no record
// of its own.
func (b *builder) caused(r sim.Record) {
	s := b.last()
	if s == nil || s.Process != r.Process || s.At != sim.Units(r.At) {
		s = b.open(sim.Record{At: r.At, Kind: "started", Process: r.Process}, fmt.Sprintf("%v starts", r.Process))
	}
	switch r.Kind {
	case sim.Noted:
		text, status := Describe(r.Process, r.Fact)
		s.Facts = append(s.Facts, text)
		if status != "" {
			s.Status = status
		}
	case sim.Armed:
		b.disarm(s, r.Process, r.Type)
		due := sim.Units(r.Due)
		s.Timers[len(s.Timers)-1].Due = &due
		b.timers[r.Process] = append(b.timers[r.Process], r.Type)
	case sim.Disarmed:
		b.disarm(s, r.Process, r.Type)
	case sim.Changed:
		s.Changes = append(s.Changes, r.Variables...)
	case sim.Sent:
		b.sent++
		b.types[r.Type]++
		s.Sent = b.sent
		s.Sends = append(s.Sends, len(b.trace.Messages))
		b.byNumber[r.Message] = len(b.trace.Messages)
		b.trace.Messages = append(b.trace.Messages, Message{Type: r.Type, Nth: b.types[r.Type], Label: r.Label,
			From: r.Process, To: r.Peer, Sent: sim.Units(r.At), Ends: sim.Units(r.At), Quiet: r.Quiet,
			number: r.Message})
	}
}

func (b *builder) last() *Step {
	if len(b.trace.Steps) == 0 {
		return nil
	}
	return &b.trace.Steps[len(b.trace.Steps)-1]
}

func (b *builder) open(r sim.Record, text string) *Step {
	b.trace.Steps = append(b.trace.Steps, Step{At: sim.Units(r.At), Kind: string(r.Kind), Process: r.Process,
		Message: -1, Text: text, Quiet: r.Quiet, Sent: b.sent, Facts: []string{}, Changes: []sim.Variable{},
		Timers: []Timer{}, Sends: []int{}})
	return b.last()
}

func (b *builder) disarm(s *Step, id sim.ID, name string) {
	b.timers[id] = slices.DeleteFunc(b.timers[id], func(n string) bool { return n == name })
	s.Timers = append(s.Timers, Timer{Name: name})
}

// settle returns the place of the message that arrives or is lost: the original, or a new
// one for a copy.
func (b *builder) settle(r sim.Record) int {
	at := b.byNumber[r.Message]
	if b.trace.Messages[at].settled {
		twin := b.trace.Messages[at]
		twin.Copy, twin.Received, twin.Lost = true, nil, ""
		at = len(b.trace.Messages)
		b.trace.Messages = append(b.trace.Messages, twin)
	}
	b.trace.Messages[at].settled = true
	return at
}

func (b *builder) arrive(r sim.Record) int {
	at := b.settle(r)
	when := sim.Units(r.At)
	b.trace.Messages[at].Received, b.trace.Messages[at].Ends = &when, when
	return at
}

// lose marks a message. One that is lost on the way is lost by the step that sends it;
// one that is lost where it arrives is a step of its own.
func (b *builder) lose(r sim.Record) {
	at := b.settle(r)
	m := &b.trace.Messages[at]
	m.Lost, m.Ends = strings.TrimPrefix(r.Label, m.Label+": "), sim.Units(r.Due)
	if r.At > r.SentAt {
		s := b.open(r, fmt.Sprintf("%v to %v: %s", r.Process, r.Peer, r.Label))
		s.Process, s.Message = r.Peer, at
	}
}
