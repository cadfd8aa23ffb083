package election

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The anonymous ring: D. Angluin, "Local and Global Properties in Networks of
// Processors", STOC 1980, and Lynch 1996, section 3.2. The processes know n but
// have no ids. Each learns the inputs of the whole ring, which is all there is to
// learn, and leads if its own view of the ring is the greatest of all rotations
// and no other process has the same view. With equal inputs all views are equal
// in every round, so either all lead or none: the algorithm never elects.
//
// It is a working election when the inputs are not all alike, which the tests use
// to show that the failure is the ring's and not the program's.

type viewMessage struct {
	round int
	input int
}

func (m viewMessage) Type() string   { return "view" }
func (m viewMessage) String() string { return fmt.Sprintf("round %d: %d", m.round, m.input) }

// anonymous is the state of one process. It has no id: equal histories are equal states.
type anonymous struct {
	n      int
	input  int
	limit  int           // rounds after which the run is given up
	round  int           // completed
	view   []int         // inputs met, own first, then counter-clockwise
	early  []viewMessage // of later rounds
	leads  bool
	awake  bool
	passes int // complete views that were symmetric
}

// Show implements sim.Shower.
func (a anonymous) Show() []sim.Variable {
	return []sim.Variable{{Name: "elected", Value: map[bool]string{true: "I", false: "⊥"}[a.leads]},
		{Name: "round", Value: fmt.Sprint(a.round)}, {Name: "view", Value: fmt.Sprint(a.view)}}
}

// Step implements sim.Node.
func (a anonymous) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case Elect:
		a = a.wake(&out)
	case sim.Deliver:
		a = a.wake(&out)
		a.early = append(slices.Clone(a.early), e.Message.(viewMessage))
		for a.advance(&out) {
			a = a.advanced(&out)
		}
	}
	return a, out
}

func (a anonymous) wake(out *sim.Output) anonymous {
	if !a.awake {
		a.awake = true
		a.view = []int{a.input}
		if a.n > 1 {
			out.SendRing(sim.Clockwise, viewMessage{round: 1, input: a.input})
		} else {
			a = a.judge(out)
		}
	}
	return a
}

// advance reports whether the message that completes the present round is here.
func (a anonymous) advance(*sim.Output) bool {
	return !a.leads && slices.ContainsFunc(a.early, a.due)
}

func (a anonymous) due(m viewMessage) bool { return m.round == a.round+1 }

func (a anonymous) advanced(out *sim.Output) anonymous {
	at := slices.IndexFunc(a.early, a.due)
	input := a.early[at].input
	a.early = slices.Delete(slices.Clone(a.early), at, at+1)
	a.round++
	a.view = append(slices.Clone(a.view), input)
	next := input
	if len(a.view) == a.n {
		a = a.judge(out)
		a.view = []int{a.input}
		next = a.input
	}
	if !a.leads && a.round < a.limit {
		out.SendRing(sim.Clockwise, viewMessage{round: a.round + 1, input: next})
	}
	return a
}

// judge compares the complete view with all its rotations, which are the views
// of the other processes.
func (a anonymous) judge(out *sim.Output) anonymous {
	for shift := 1; shift < a.n; shift++ {
		other := append(slices.Clone(a.view[shift:]), a.view[:shift]...)
		if slices.Compare(a.view, other) <= 0 {
			if slices.Equal(a.view, other) {
				a.passes++
			}
			return a
		}
	}
	a.leads = true
	out.Note(FactLeader, sim.Service, 0) // "I": the checker puts the id in
	return a
}
