package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// leaveTimer ends a stay in the critical section; it is the judge's, and the same that the
// lab's own locks have.
const leaveTimer = "leave"

// foreign is a message of a program.
type foreign struct{ kind, body string }

// Type implements sim.Message.
func (m foreign) Type() string { return m.kind }

// String implements sim.Message.
func (m foreign) String() string {
	if m.body == "" || m.body == "null" {
		return m.kind
	}
	return m.kind + " " + strings.Trim(m.body, `{}"`)
}

// node is a process whose steps a program computes. Its state is the program's: unlike all
// other nodes it is no value.
type node struct {
	program *program
	ids     []sim.ID // all, ascending
	self    sim.ID
	hold    time.Duration // of a stay inside; 0 in an election
	leader  sim.ID
	shown   []sim.Variable
	inside  bool
}

// Show implements sim.Shower.
func (n node) Show() []sim.Variable { return n.shown }

// Step implements sim.Node.
func (n node) Step(now time.Duration, e sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	units := sim.Units(now)
	asked := event{Now: &units}
	switch e := e.(type) {
	case sim.Start:
		asked.Event = "start"
	case sim.Recover:
		asked.Event, n.inside, n.leader = "recover", false, sim.None
	case sim.Deliver:
		m := e.Message.(foreign)
		asked.Event, asked.From, asked.Type, asked.Body = "message", &e.From, m.kind, json.RawMessage(m.body)
		if m.body == "" {
			asked.Body = json.RawMessage("null")
		}
	case sim.Timeout:
		asked.Event, asked.Name = "timeout", e.Name
		if e.Name == leaveTimer {
			asked.Event, asked.Name = "leave", ""
		}
	case election.Elect:
		asked.Event, asked.Suspected = "elect", e.Suspected
	case election.Suspect:
		asked.Event, asked.ID = "suspect", &e.ID
	case election.Trust:
		asked.Event, asked.ID = "trust", &e.ID
	case mutex.Request:
		asked.Event = "request"
		out.Note(mutex.FactRequest, sim.None, 0)
	}
	a, err := n.program.ask(asked)
	if err == nil {
		err = n.take(a, &out)
	}
	if err != nil && n.program.err == nil {
		n.program.err = fmt.Errorf("asked %s: %w", asked.Event, err)
	}
	return n, out
}

// take carries out an answer.
func (n *node) take(a answer, out *sim.Output) error {
	for _, s := range a.Send {
		if *s.To == n.self || !slices.Contains(n.ids, *s.To) {
			return fmt.Errorf("a message from %d to %d: want another of %v", int(n.self), int(*s.To), n.ids)
		}
		out.Send(*s.To, foreign{s.Type, string(s.Body)})
	}
	for _, t := range a.Timers {
		if t.Cancel {
			out.CancelTimer(t.Name)
		} else {
			out.SetTimer(t.Name, time.Duration(*t.After*float64(sim.Unit)))
		}
	}
	if a.Leader != nil {
		leader := sim.None
		if string(a.Leader) != "null" {
			if err := json.Unmarshal(a.Leader, &leader); err != nil || !slices.Contains(n.ids, leader) {
				return fmt.Errorf("leader %s: want one of %v, or null", a.Leader, n.ids)
			}
		}
		if leader != n.leader {
			n.leader = leader
			out.Note(election.FactLeader, leader, 0)
		}
	}
	if a.Enter {
		if n.hold == 0 || n.inside {
			return fmt.Errorf("it enters, and is inside or has nothing to enter")
		}
		n.inside = true
		out.Note(mutex.FactEnter, sim.None, 0)
		out.SetTimer(leaveTimer, n.hold)
	}
	if a.Exit {
		if !n.inside {
			return fmt.Errorf("it leaves, and is not inside")
		}
		n.inside = false
		out.Note(mutex.FactExit, sim.None, 0)
		out.CancelTimer(leaveTimer)
	}
	n.shown = slices.Clone(n.shown)
	for _, name := range slices.Sorted(maps.Keys(a.Variables)) {
		v := sim.Variable{Name: name, Value: strings.Trim(string(a.Variables[name]), `"`)}
		at := slices.IndexFunc(n.shown, func(w sim.Variable) bool { return w.Name == name })
		if at < 0 {
			n.shown = append(n.shown, v)
		} else {
			n.shown[at] = v
		}
	}
	return nil
}
