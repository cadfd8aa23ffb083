package election

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The ring algorithm: E. Chang and R. Roberts, "An Improved Algorithm for
// Decentralized Extrema-Finding in Circular Configurations of Processes", CACM
// 22(5), 1979, in the form taught: an election message carries the best
// id:attribute met so far; when it is back at the process it names, that process
// is elected and an elected message goes round. Of several initiators the lower is
// suppressed; the form in which participants swallow is in participant.go.

// ringRun orders runs: a later run beats an earlier one, and of two runs started
// at once the one of the higher initiator survives (suppression). Run numbers
// are the virtual time of their start, so that a process which was down and
// starts a run is not mistaken for an old one; real clocks would have to agree
// to within a message time.
type ringRun struct {
	number    int
	initiator sim.ID
}

func (r ringRun) before(o ringRun) bool {
	return r.number < o.number || r.number == o.number && r.initiator < o.initiator
}

type ringElection struct {
	run       ringRun
	best      sim.ID
	attribute float64
}

func (m ringElection) Type() string { return "election" }
func (m ringElection) String() string {
	if m.attribute == float64(m.best) {
		return fmt.Sprintf("election %d", m.best)
	}
	return fmt.Sprintf("election %d:%g", m.best, m.attribute)
}

type ringElected struct {
	run    ringRun
	leader sim.ID
}

func (m ringElected) Type() string   { return "elected" }
func (m ringElected) String() string { return fmt.Sprintf("elected %d", m.leader) }

// ringNode is the state of one process. On disk: nothing.
type ringNode struct {
	self      sim.ID
	attribute float64
	neighbour neighbour // watched while it is about to win
	patience  time.Duration
	run       ringRun
	joined    bool // has sent an election message in run
	alarmed   bool // has set the alarm for the elected message in run
	leader    sim.ID
}

func buildRing(s setup, id sim.ID, place int) sim.Node {
	n := len(s.config.IDs)
	watch := neighbour{id: sim.None, bound: s.timing.bound}
	switch s.config.Detector {
	case DetectorNeighbour:
		watch.id = s.config.IDs[(place+1)%n]
	case DetectorSuccessor:
		watch.id = s.config.IDs[(place+n-1)%n]
	}
	if s.config.Participants {
		return participant{self: id, attribute: s.config.attribute(id), leader: sim.None}
	}
	return ringNode{self: id, attribute: s.config.attribute(id), leader: sim.None, neighbour: watch,
		// From passing the neighbour's id on, the message goes once round, then
		// the elected message does, and one message time is to spare.
		patience: time.Duration(2*n+2) * s.timing.bound}
}

// Show implements sim.Shower.
func (r ringNode) Show() []sim.Variable {
	return []sim.Variable{{Name: "elected", Value: elected(r.leader)},
		{Name: "participant", Value: yesNo(r.joined && r.leader == sim.None)},
		{Name: "initiator", Value: initiatorOf(r.run)}}
}

func initiatorOf(r ringRun) string {
	if r.number == 0 {
		return "-"
	}
	return r.initiator.String()
}

// Step implements sim.Node.
func (r ringNode) Step(now time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Recover:
		r = r.enter(ringRun{}, &out)
		r = r.initiate(now, &out)
	case Elect:
		r = r.initiate(now, &out)
	case Suspect:
		// The crash matters if it takes the leader, the one about to win, or
		// perhaps the message of a run that is under way.
		if e.ID == r.leader || r.joined && r.leader == sim.None {
			r = r.initiate(now, &out)
		}
	case sim.Timeout:
		if e.Name == timerCheck && r.leader == r.neighbour.id || r.leader == sim.None {
			r = r.initiate(now, &out)
		}
	case sim.Deliver:
		switch m := e.Message.(type) {
		case ringElection:
			r = r.election(m, &out)
		case ringElected:
			r = r.elected(m, &out)
		case checkMessage:
			m.answer(e.From, &out)
		}
	}
	return r, out
}

func (r ringNode) initiate(now time.Duration, out *sim.Output) ringNode {
	number := max(int(now/time.Microsecond)+1, r.run.number+1)
	r = r.enter(ringRun{number: number, initiator: r.self}, out)
	r.joined = true
	out.SendRing(sim.Clockwise, ringElection{r.run, r.self, r.attribute})
	return r
}

// enter makes run the one this process takes part in.
func (r ringNode) enter(run ringRun, out *sim.Output) ringNode {
	r.run, r.joined, r.alarmed = run, false, false
	out.CancelTimer(timerElected)
	out.CancelTimer(timerCheck)
	return r.hold(sim.None, out)
}

func (r ringNode) election(m ringElection, out *sim.Output) ringNode {
	if m.run.before(r.run) {
		return r // suppressed: a later run or a higher initiator is at work
	}
	if r.run.before(m.run) {
		r = r.enter(m.run, out)
	}
	mine := m.attribute < r.attribute || m.attribute == r.attribute && m.best < r.self
	switch {
	case m.best == r.self:
		if r.leader != r.self {
			r = r.hold(r.self, out)
			out.SendRing(sim.Clockwise, ringElected{r.run, r.self})
		}
		return r
	case mine && r.joined:
		return r // its own attribute is on its way already
	case mine:
		m.best, m.attribute = r.self, r.attribute
	}
	if m.best == r.neighbour.id && !r.alarmed {
		// Set once a run: an election message that circulates forever must not put the alarm
		// off at every lap.
		r.alarmed = true
		out.SetTimer(timerElected, r.patience)
	}
	r.joined = true
	out.SendRing(sim.Clockwise, m)
	return r
}

func (r ringNode) elected(m ringElected, out *sim.Output) ringNode {
	if m.run.before(r.run) || m.leader == r.self {
		return r
	}
	if m.run == r.run && r.leader == m.leader {
		return r // once round already, and its leader did not take it out
	}
	if r.run.before(m.run) {
		r = r.enter(m.run, out)
	}
	r.joined = true
	out.CancelTimer(timerElected)
	r = r.hold(m.leader, out)
	out.SendRing(sim.Clockwise, m)
	if m.leader == r.neighbour.id {
		r.neighbour.check(out)
	}
	return r
}

func (r ringNode) hold(leader sim.ID, out *sim.Output) ringNode {
	if r.leader != leader {
		r.leader = leader
		out.Note(FactLeader, leader, 0)
	}
	return r
}
