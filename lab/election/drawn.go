package election

import (
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// ZooKeeper's election as lectures draw it: the highest id leads; each other process polls the
// process with the next-higher id. If that was the leader and has failed it becomes the leader,
// otherwise it waits and checks again. The leader is known from the ids at first, and then from
// the answers. A process that dies while it does not lead leaves a gap: the one that polls it
// learns nothing of those above. The recipe that ZooKeeper documents (zookeeper.go) closes the
// gap: a watch moves on to the next lower znode.

// pollPeriod is how long a process waits between two checks, in message times.
const pollPeriod = 5

// drawn is the state of one process. On disk: nothing.
type drawn struct {
	self   sim.ID
	higher sim.ID // the process polled, None for the highest
	leads  bool   // higher led when it answered last
	bound  time.Duration
	leader sim.ID // itself, higher, or None if it does not know
}

func buildDrawn(s setup, id sim.ID, _ int) sim.Node {
	d := drawn{self: id, higher: sim.None, bound: s.timing.bound, leader: sim.None}
	if at := s.rank[id]; at+1 < len(s.ranked) {
		d.higher = s.ranked[at+1]
		d.leads = at+2 == len(s.ranked)
	}
	return d
}

// Show implements sim.Shower.
func (d drawn) Show() []sim.Variable {
	return []sim.Variable{{Name: "leader", Value: elected(d.leader)},
		{Name: "polls", Value: elected(d.higher)}}
}

// Step implements sim.Node.
func (d drawn) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Start:
		if d.higher == sim.None {
			d = d.hold(d.self, &out)
		}
		d.poll(&out)
	case sim.Recover:
		d.leads = false
		d = d.hold(sim.None, &out)
		d.poll(&out)
	case sim.Timeout:
		if e.Name == timerCheck && d.leads {
			return d.hold(d.self, &out), out
		}
		if e.Name == timerCheck {
			out.SetTimer("poll", pollPeriod*d.bound)
			return d.hold(sim.None, &out), out
		}
		d.poll(&out)
	case sim.Deliver:
		m := e.Message.(checkMessage)
		if m.kind == kindCheck {
			out.Send(e.From, checkMessage{kind: kindAlive, leads: d.leader == d.self})
			return d, out
		}
		out.CancelTimer(timerCheck)
		out.SetTimer("poll", pollPeriod*d.bound)
		d.leads = m.leads
		if m.leads {
			d = d.hold(e.From, &out)
		} else {
			d = d.hold(sim.None, &out)
		}
	}
	return d, out
}

func (d drawn) poll(out *sim.Output) {
	if d.higher != sim.None && d.leader != d.self {
		out.Send(d.higher, checkMessage{kind: kindCheck})
		out.SetTimer(timerCheck, 2*d.bound)
	}
}

func (d drawn) hold(leader sim.ID, out *sim.Output) drawn {
	if d.leader != leader {
		d.leader = leader
		out.Note(FactLeader, leader, 0)
	}
	return d
}
