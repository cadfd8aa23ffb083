package election

import (
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The bully algorithm: H. Garcia-Molina, "Elections in a Distributed Computing System", IEEE
// Transactions on Computers C-31(1), 1982, in the form taught: a process that misses the
// coordinator asks all processes with higher ids; if none answers it is the coordinator and
// announces that to all lower ones. Lectures differ in which processes get the question and the
// announcement, and in whether a coordinator that is asked announces itself once more: see
// bullyForm.

type bullyMessage struct{ kind string }

func (m bullyMessage) Type() string   { return m.kind }
func (m bullyMessage) String() string { return m.kind }

// The three messages of the algorithm. The lectures call the answer OK.
const (
	bullyElection    = "election"
	bullyAnswer      = "answer"
	bullyCoordinator = "coordinator"
)

type bullyPhase uint8

const (
	bullyIdle            bullyPhase = iota
	bullyAnswered                   // sent an answer, about to ask the higher ones
	bullyWaitAnswer                 // asked the higher ones
	bullyWaitCoordinator            // a higher one answered
)

func (p bullyPhase) String() string {
	return [...]string{"idle", "answered", "waits for answers", "waits for the coordinator"}[p]
}

// bullyForm is the form of the algorithm. The zero value asks the higher ones, informs the
// lower ones and announces again.
type bullyForm struct {
	askAll  bool // send the election message to the lower ones, too, which do not answer
	tellAll bool // send the announcement to the higher ones too
	once    bool // a coordinator that is asked answers, but does not announce itself again
}

// bully is the state of one process. On disk: nothing.
type bully struct {
	self      sim.ID
	peers     []sim.ID       // all, from the worst to the best; shared and never changed
	rank      map[sim.ID]int // places in peers; shared and never changed
	form      bullyForm
	timing    timing
	phase     bullyPhase
	leader    sim.ID
	suspected []sim.ID // ascending ids
}

func buildBully(s setup, id sim.ID, _ int) sim.Node {
	return bully{self: id, peers: s.ranked, rank: s.rank, timing: s.timing, leader: sim.None,
		form: bullyForm{askAll: s.config.AskAll, tellAll: s.config.TellAll, once: s.config.AnnounceOnce}}
}

// Show implements sim.Shower.
func (b bully) Show() []sim.Variable {
	return []sim.Variable{{Name: "elected", Value: elected(b.leader)},
		{Name: "phase", Value: b.phase.String()}, {Name: "suspects", Value: list(b.suspected)}}
}

// Step implements sim.Node.
func (b bully) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Recover:
		b.phase, b.suspected = bullyIdle, nil
		b = b.hold(sim.None, &out)
		b = b.elect(&out)
	case Elect:
		for _, id := range e.Suspected {
			b.suspected = with(b.suspected, id)
		}
		if b.phase == bullyIdle {
			b = b.elect(&out)
		}
	case Suspect:
		b.suspected = with(b.suspected, e.ID)
		if e.ID == b.leader {
			b = b.hold(sim.None, &out)
			if b.phase == bullyIdle {
				b = b.elect(&out)
			}
		}
	case Trust:
		b.suspected = without(b.suspected, e.ID)
	case sim.Deliver:
		b.suspected = without(b.suspected, e.From)
		b = b.receive(e, &out)
	case sim.Timeout:
		b = b.timeout(e.Name, &out)
	}
	return b, out
}

func (b bully) receive(d sim.Deliver, out *sim.Output) bully {
	higher := b.rank[d.From] > b.rank[b.self]
	switch d.Message.Type() {
	case bullyElection:
		if higher {
			return b // asked although it is lower: it keeps silent
		}
		out.Send(d.From, bullyMessage{bullyAnswer})
		return b.prepare(out)
	case bullyAnswer:
		if b.phase == bullyWaitAnswer {
			b.phase = bullyWaitCoordinator
			out.CancelTimer("answer")
			out.SetTimer("coordinator", b.timing.coordinator)
		}
	case bullyCoordinator:
		if !higher {
			return b.prepare(out) // it outranks the process that announces itself
		}
		if b.leader != sim.None && b.rank[d.From] < b.rank[b.leader] && !holds(b.suspected, b.leader) {
			return b // overtaken by the announcement of a higher process
		}
		b.phase = bullyIdle
		out.CancelTimer("elect")
		out.CancelTimer("answer")
		out.CancelTimer("coordinator")
		b = b.hold(d.From, out)
	}
	return b
}

// prepare begins an election of its own, unless it has done so already. A process
// first answers and then asks, one transmission after the other: the lectures' five
// message times count them in that order.
func (b bully) prepare(out *sim.Output) bully {
	if b.phase == bullyIdle && !(b.form.once && b.leader == b.self) {
		b.phase = bullyAnswered
		out.SetTimer("elect", b.timing.bound)
	}
	return b
}

func (b bully) timeout(name string, out *sim.Output) bully {
	switch name {
	case "elect", "coordinator":
		return b.elect(out)
	default: // no answer: no higher process is up
		return b.announce(out)
	}
}

// elect asks all higher processes, unless all of them are known to be down.
func (b bully) elect(out *sim.Output) bully {
	at := b.rank[b.self]
	higher := b.peers[at+1:]
	if !slices.ContainsFunc(higher, func(id sim.ID) bool { return !holds(b.suspected, id) }) {
		return b.announce(out)
	}
	b = b.hold(sim.None, out)
	b.phase = bullyWaitAnswer
	if b.form.askAll {
		b.tell(b.peers[:at], bullyElection, out)
	}
	b.tell(higher, bullyElection, out)
	out.SetTimer("answer", b.timing.answer)
	return b
}

func (b bully) announce(out *sim.Output) bully {
	b.phase = bullyIdle
	at := b.rank[b.self]
	b.tell(b.peers[:at], bullyCoordinator, out)
	if b.form.tellAll {
		b.tell(b.peers[at+1:], bullyCoordinator, out)
	}
	return b.hold(b.self, out)
}

func (b bully) tell(to []sim.ID, kind string, out *sim.Output) {
	for _, id := range to {
		out.Send(id, bullyMessage{kind})
	}
}

func (b bully) hold(leader sim.ID, out *sim.Output) bully {
	if b.leader != leader {
		b.leader = leader
		out.Note(FactLeader, leader, 0)
	}
	return b
}
