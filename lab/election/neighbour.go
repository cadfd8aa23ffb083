package election

import (
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The lectures' first repair of the ring: the predecessor or the successor of the
// would-be leader watches it alone. It starts a new run if it has passed the other's
// election message on and the elected message does not come in time, or if the other
// does not answer a check once the elected message has come.

// Timers of that repair.
const (
	timerElected = "elected" // the elected message should have come
	timerCheck   = "check"   // the answer should have come
)

// Types of the messages by which a process looks whether another is alive.
const (
	kindCheck = "check"
	kindAlive = "alive"
)

// checkMessage asks whether a process is up, or says so.
type checkMessage struct {
	kind  string
	leads bool // of an answer: it is the leader
}

// Type implements sim.Message.
func (m checkMessage) Type() string { return m.kind }

// String implements sim.Message.
func (m checkMessage) String() string {
	if m.leads {
		return m.kind + ", leads"
	}
	return m.kind
}

// answer is what the ring makes of such a message.
func (m checkMessage) answer(from sim.ID, out *sim.Output) {
	if m.kind == kindCheck {
		out.Send(from, checkMessage{kind: kindAlive})
	} else {
		out.CancelTimer(timerCheck)
	}
}

// neighbour is who is watched; id is None for nobody.
type neighbour struct {
	id    sim.ID
	bound time.Duration
}

func (n neighbour) check(out *sim.Output) {
	out.Send(n.id, checkMessage{kind: kindCheck})
	out.SetTimer(timerCheck, 2*n.bound)
}
