package election

import (
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// LCR: G. Le Lann, "Distributed Systems: Towards a Formal Approach", IFIP 1977, as improved by
// Chang and Roberts 1979 and analysed in N. Lynch, "Distributed Algorithms", 1996, section 3.3.
// Each process sends its id clockwise; a larger id is forwarded, a smaller one swallowed, and a
// process that meets its own id leads.

type lcrCandidate struct{ id sim.ID }

func (m lcrCandidate) Type() string   { return "candidate" }
func (m lcrCandidate) String() string { return fmt.Sprintf("candidate %d", m.id) }

// leaderMessage announces the winner to the ring; LCR and HS share it.
type leaderMessage struct{ id sim.ID }

func (m leaderMessage) Type() string   { return "leader" }
func (m leaderMessage) String() string { return fmt.Sprintf("leader %d", m.id) }

type lcr struct {
	self   sim.ID
	awake  bool
	leader sim.ID
}

// Show implements sim.Shower.
func (l lcr) Show() []sim.Variable {
	return []sim.Variable{{Name: "elected", Value: elected(l.leader)}}
}

// Step implements sim.Node.
func (l lcr) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case Elect:
		l = l.wake(&out)
	case sim.Deliver:
		switch m := e.Message.(type) {
		case lcrCandidate:
			l = l.wake(&out)
			if m.id > l.self {
				out.SendRing(sim.Clockwise, m)
			} else if m.id == l.self && l.leader != l.self {
				l.leader = l.self
				out.Note(FactLeader, l.self, 0)
				out.SendRing(sim.Clockwise, leaderMessage{l.self})
			}
		case leaderMessage:
			l.leader = passLeader(l.self, l.leader, m, &out)
		}
	}
	return l, out
}

// wake makes a process that did not initiate take part before it answers its
// first message: a process may swallow an id only after having sent its own.
func (l lcr) wake(out *sim.Output) lcr {
	if !l.awake {
		l.awake = true
		out.SendRing(sim.Clockwise, lcrCandidate{l.self})
	}
	return l
}

// passLeader notes the leader and passes the message on; the leader takes it
// out of the ring, as does a process that has seen it already.
func passLeader(self, held sim.ID, m leaderMessage, out *sim.Output) sim.ID {
	if m.id == self || m.id == held {
		return held
	}
	out.Note(FactLeader, m.id, 0)
	out.SendRing(sim.Clockwise, m)
	return m.id
}
