package election

import (
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The bully algorithm: H. Garcia-Molina, "Elections in a Distributed Computing
// System", IEEE Transactions on Computers C-31(1), 1982, in the form taught:
// a process that misses the coordinator asks all processes with higher ids; if
// none answers it is the coordinator and says so to all lower ones.

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

// bully is the state of one process. On disk: nothing.
type bully struct {
	self      sim.ID
	peers     []sim.ID // all ids, ascending; shared and never changed
	timing    timing
	phase     bullyPhase
	leader    sim.ID
	suspected []sim.ID
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
	switch d.Message.Type() {
	case bullyElection:
		out.Send(d.From, bullyMessage{bullyAnswer})
		if b.phase == bullyIdle {
			// A process first answers and then asks, one transmission after the
			// other. The lectures' five message times count them in that order.
			b.phase = bullyAnswered
			out.SetTimer("elect", b.timing.bound)
		}
	case bullyAnswer:
		if b.phase == bullyWaitAnswer {
			b.phase = bullyWaitCoordinator
			out.CancelTimer("answer")
			// Five message times are the longest an election takes.
			out.SetTimer("coordinator", 5*b.timing.bound)
		}
	case bullyCoordinator:
		if d.From < b.leader && !holds(b.suspected, b.leader) {
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
	at, _ := slices.BinarySearch(b.peers, b.self)
	higher := b.peers[at+1:]
	if !slices.ContainsFunc(higher, func(id sim.ID) bool { return !holds(b.suspected, id) }) {
		return b.announce(out)
	}
	b = b.hold(sim.None, out)
	b.phase = bullyWaitAnswer
	for _, id := range higher {
		out.Send(id, bullyMessage{bullyElection})
	}
	out.SetTimer("answer", b.timing.answer)
	return b
}

func (b bully) announce(out *sim.Output) bully {
	b.phase = bullyIdle
	at, _ := slices.BinarySearch(b.peers, b.self)
	for _, id := range b.peers[:at] {
		out.Send(id, bullyMessage{bullyCoordinator})
	}
	return b.hold(b.self, out)
}

func (b bully) hold(leader sim.ID, out *sim.Output) bully {
	if b.leader != leader {
		b.leader = leader
		out.Note(FactLeader, leader, 0)
	}
	return b
}
