package election

import (
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// participant is the ring algorithm by the other rule of the lectures, that of Chang and
// Roberts: a process that has sent an election message takes part, and a process that takes
// part swallows smaller ids. Messages have no run, so an old one is suppressed only because the
// process named in it is believed down. On disk: nothing.
type participant struct {
	self      sim.ID
	attribute float64
	takesPart bool
	leader    sim.ID
	suspected []sim.ID // ascending
}

// Show implements sim.Shower.
func (p participant) Show() []sim.Variable {
	return []sim.Variable{{Name: "elected", Value: elected(p.leader)},
		{Name: "participant", Value: yesNo(p.takesPart)}, {Name: "suspects", Value: list(p.suspected)}}
}

// Step implements sim.Node.
func (p participant) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Recover:
		p.takesPart, p.suspected = false, nil
		p = p.hold(sim.None, &out)
		p = p.initiate(&out)
	case Elect:
		for _, id := range e.Suspected {
			p.suspected = with(p.suspected, id)
		}
		if !p.takesPart { // at most one election at a time
			p = p.initiate(&out)
		}
	case Suspect:
		p.suspected = with(p.suspected, e.ID)
		if e.ID == p.leader || p.takesPart {
			p = p.hold(sim.None, &out)
			p = p.initiate(&out)
		}
	case Trust:
		p.suspected = without(p.suspected, e.ID)
	case sim.Deliver:
		switch m := e.Message.(type) {
		case ringElection:
			p = p.election(m, &out)
		case ringElected:
			p = p.elected(m, &out)
		}
	}
	return p, out
}

func (p participant) initiate(out *sim.Output) participant {
	p.takesPart = true
	out.SendRing(sim.Clockwise, ringElection{best: p.self, attribute: p.attribute})
	return p
}

func (p participant) election(m ringElection, out *sim.Output) participant {
	mine := m.attribute < p.attribute || m.attribute == p.attribute && m.best < p.self
	switch {
	case m.best == p.self:
		if p.takesPart {
			p.takesPart = false
			p = p.hold(p.self, out)
			out.SendRing(sim.Clockwise, ringElected{leader: p.self})
		}
	case holds(p.suspected, m.best) || mine && p.takesPart:
		// swallowed
	case mine:
		p = p.initiate(out)
	default:
		p.takesPart = true
		out.SendRing(sim.Clockwise, m)
	}
	return p
}

func (p participant) elected(m ringElected, out *sim.Output) participant {
	if m.leader == p.self || holds(p.suspected, m.leader) {
		return p
	}
	if m.leader == p.leader && !p.takesPart {
		return p // once round already, and its leader did not take it out
	}
	p.takesPart = false
	p = p.hold(m.leader, out)
	out.SendRing(sim.Clockwise, m)
	return p
}

func (p participant) hold(leader sim.ID, out *sim.Output) participant {
	if p.leader != leader {
		p.leader = leader
		out.Note(FactLeader, leader, 0)
	}
	return p
}
