package election

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The trivial solution: all processes send their ids to all others and take the largest one
// heard. It is the yardstick with which the lectures begin. A process decides when it has heard
// all others or after two message times, one for its own message to wake the others and one for
// theirs to arrive.

type broadcastID struct{ id sim.ID }

func (m broadcastID) Type() string   { return "id" }
func (m broadcastID) String() string { return fmt.Sprintf("id %d", m.id) }

type broadcast struct {
	self   sim.ID
	peers  []sim.ID // all ids, ascending; shared and never changed
	timing timing
	awake  bool
	heard  []uint64 // bit i: peers[i] was heard
	count  int
	best   sim.ID
	leader sim.ID
}

// Show implements sim.Shower.
func (b broadcast) Show() []sim.Variable {
	return []sim.Variable{{Name: "elected", Value: elected(b.leader)},
		{Name: "heard", Value: fmt.Sprintf("%d of %d", b.count, len(b.peers)-1)}}
}

// Step implements sim.Node.
func (b broadcast) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case Elect:
		b = b.wake(&out)
	case sim.Timeout:
		b = b.decide(&out)
	case sim.Deliver:
		b = b.wake(&out)
		b = b.hear(e.Message.(broadcastID).id)
		if b.count == len(b.peers)-1 {
			out.CancelTimer("decide")
			b = b.decide(&out)
		}
	}
	return b, out
}

func (b broadcast) wake(out *sim.Output) broadcast {
	if b.awake {
		return b
	}
	b.awake, b.best = true, b.self
	for _, id := range b.peers {
		if id != b.self {
			out.Send(id, broadcastID{b.self})
		}
	}
	out.SetTimer("decide", b.timing.answer)
	return b
}

func (b broadcast) hear(id sim.ID) broadcast {
	at, _ := slices.BinarySearch(b.peers, id)
	word, bit := at/64, uint64(1)<<(at%64)
	if b.heard == nil {
		b.heard = make([]uint64, (len(b.peers)+63)/64)
	}
	if b.heard[word]&bit != 0 {
		return b
	}
	b.heard = slices.Clone(b.heard)
	b.heard[word] |= bit
	b.count++
	b.best = max(b.best, id)
	return b
}

func (b broadcast) decide(out *sim.Output) broadcast {
	if b.leader == sim.None {
		b.leader = b.best
		out.Note(FactLeader, b.leader, 0)
	}
	return b
}
