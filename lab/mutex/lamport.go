package mutex

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Lamport's algorithm: L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed
// System", CACM 21(7), 1978. Every process keeps the queue of all requests in timestamp order.
// A process enters when its own request is first and it has heard from all others since; 3(N-1)
// messages. Links must be first-in first-out: that is why hearing a later message rules out an
// earlier request.

type stamped struct {
	kind  string
	stamp stamp
}

func (m stamped) Type() string { return m.kind }
func (m stamped) String() string {
	return fmt.Sprintf("%s (%d,%d)", m.kind, m.stamp.clock, m.stamp.id)
}

const (
	kindRequest = "request"
	kindReply   = "reply"
	kindRelease = "release"
)

type lamport struct {
	section
	self  sim.ID
	peers []sim.ID // all ids, ascending; shared and never changed
	clock int
	own   stamp
	queue []stamp
	heard places // peers heard with a stamp after own, so that none can be ahead
}

// Show implements sim.Shower.
func (l lamport) Show() []sim.Variable {
	return append(l.section.Show(), sim.Variable{Name: "clock", Value: fmt.Sprint(l.clock)},
		sim.Variable{Name: "queue", Value: showStamps(l.queue)},
		sim.Variable{Name: "heard later", Value: fmt.Sprintf("%d of %d", l.heard.count, len(l.peers)-1)})
}

// Step implements sim.Node.
func (l lamport) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Recover:
		l.phase = outside
		l.queue = drop(l.queue, l.self)
	case Request:
		if l.want(&out) {
			l.clock++
			// Nothing heard so far has a stamp after this one.
			l.own, l.heard = stamp{l.clock, l.self}, places{}
			l.queue = insert(l.queue, l.own)
			l.tell(kindRequest, &out)
			l.tryEnter(&out)
		}
	case sim.Deliver:
		l.receive(e.From, e.Message.(stamped), &out)
		l.tryEnter(&out)
	case sim.Timeout:
		l.exit(&out)
		l.queue = drop(l.queue, l.self)
		l.clock++
		l.tell(kindRelease, &out)
	}
	return l, out
}

func (l *lamport) receive(from sim.ID, m stamped, out *sim.Output) {
	l.clock = max(l.clock, m.stamp.clock) + 1
	at, _ := slices.BinarySearch(l.peers, from)
	if l.own.before(m.stamp) {
		l.heard = l.heard.with(at)
	}
	switch m.kind {
	case kindRequest:
		l.queue = insert(l.queue, m.stamp)
		out.Send(from, stamped{kindReply, stamp{l.clock, l.self}})
	case kindRelease:
		l.queue = drop(l.queue, from)
	}
}

func (l *lamport) tell(kind string, out *sim.Output) {
	for _, id := range l.peers {
		if id != l.self {
			out.Send(id, stamped{kind, stamp{l.clock, l.self}})
		}
	}
}

func (l *lamport) tryEnter(out *sim.Output) {
	if l.phase == wanting && l.queue[0] == l.own && l.heard.count == len(l.peers)-1 {
		l.enter(out)
	}
}
