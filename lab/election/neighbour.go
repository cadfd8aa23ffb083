package election

import (
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The lectures' first repair of the ring: the predecessor or the successor of the would-be
// leader watches it alone. It starts a new run if it has passed the other's election message on
// and the elected message does not arrive in time, or if the other does not answer a check once
// the elected message has arrived.

// Timers of that repair.
const (
	timerElected = "elected" // the elected message should have arrived
	timerCheck   = "check"   // the answer should have arrived
)

// Types of the messages with which a process checks whether another is alive.
const (
	kindCheck = "check"
	kindAlive = "alive"
)

// checkMessage asks whether a process is up, or answers that it is.
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

// answer is the ring's reaction to such a message.
func (m checkMessage) answer(from sim.ID, out *sim.Output) {
	if m.kind == kindCheck {
		out.Send(from, checkMessage{kind: kindAlive})
	} else {
		out.CancelTimer(timerCheck)
	}
}

// neighbour is the watched process; id is None if there is none.
type neighbour struct {
	id    sim.ID
	bound time.Duration
}

func (n neighbour) check(out *sim.Output) {
	out.Send(n.id, checkMessage{kind: kindCheck})
	out.SetTimer(timerCheck, 2*n.bound)
}
