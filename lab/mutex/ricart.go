package mutex

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Ricart-Agrawala: G. Ricart and A. Agrawala, "An Optimal Algorithm for Mutual
// Exclusion in Computer Networks", CACM 24(1), 1981. As Lamport's, but a process
// that is inside, or wants in with an earlier timestamp, keeps its reply until it
// leaves, so that the reply is the permission and no release is needed: 2(N-1).

type ricart struct {
	section
	self     sim.ID
	peers    []sim.ID // all ids, ascending; shared and never changed
	clock    int
	own      stamp
	granted  places
	deferred []stamp // requests whose reply is deferred
}

// Show implements sim.Shower.
func (r ricart) Show() []sim.Variable {
	own := "-"
	if r.phase != outside {
		own = r.own.String()
	}
	return append(r.section.Show(), sim.Variable{Name: "clock", Value: fmt.Sprint(r.clock)},
		sim.Variable{Name: "own request", Value: own},
		sim.Variable{Name: "replies", Value: fmt.Sprintf("%d of %d", r.granted.count, len(r.peers)-1)},
		sim.Variable{Name: "kept back", Value: showStamps(r.deferred)})
}

// Step implements sim.Node.
func (r ricart) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Recover:
		r.phase, r.granted = outside, places{}
		r.release(&out)
	case Request:
		if r.want(&out) {
			r.clock++
			r.own, r.granted = stamp{r.clock, r.self}, places{}
			for _, id := range r.peers {
				if id != r.self {
					out.Send(id, stamped{kindRequest, r.own})
				}
			}
			r.tryEnter(&out)
		}
	case sim.Deliver:
		r.receive(e.From, e.Message.(stamped), &out)
	case sim.Timeout:
		r.exit(&out)
		r.release(&out)
	}
	return r, out
}

func (r *ricart) receive(from sim.ID, m stamped, out *sim.Output) {
	r.clock = max(r.clock, m.stamp.clock) + 1
	if m.kind == kindReply {
		// The reply names the request it answers: one to a request from before
		// a crash is void.
		if r.phase == wanting && m.stamp == r.own {
			at, _ := slices.BinarySearch(r.peers, from)
			r.granted = r.granted.with(at)
			r.tryEnter(out)
		}
		return
	}
	if r.phase == inside || r.phase == wanting && r.own.before(m.stamp) {
		r.deferred = insert(r.deferred, m.stamp)
		return
	}
	out.Send(from, stamped{kindReply, m.stamp})
}

func (r *ricart) release(out *sim.Output) {
	for _, request := range r.deferred {
		out.Send(request.id, stamped{kindReply, request})
	}
	r.deferred = nil
}

func (r *ricart) tryEnter(out *sim.Output) {
	if r.granted.count == len(r.peers)-1 {
		r.enter(out)
	}
}
