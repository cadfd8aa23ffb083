package election

import (
	"fmt"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// HS: D. S. Hirschberg and J. B. Sinclair, "Decentralized Extrema-Finding in Circular
// Configurations of Processors", CACM 23(11), 1980. In phase k a candidate probes 2^k processes
// on either side; a process with a larger id swallows the probe, the last one replies, and two
// replies open phase k+1. A probe that returns to its sender has met no larger id.

type hsProbe struct {
	id    sim.ID
	phase int
	hops  int
}

func (m hsProbe) Type() string { return "probe" }
func (m hsProbe) String() string {
	return fmt.Sprintf("probe %d, hop %d of %d", m.id, m.hops, 1<<m.phase)
}

type hsReply struct {
	id    sim.ID
	phase int
}

func (m hsReply) Type() string   { return "reply" }
func (m hsReply) String() string { return fmt.Sprintf("reply %d, phase %d", m.id, m.phase) }

type hs struct {
	self    sim.ID
	awake   bool
	phase   int
	replies int
	leader  sim.ID
}

// Show implements sim.Shower.
func (h hs) Show() []sim.Variable {
	return []sim.Variable{{Name: "elected", Value: elected(h.leader)},
		{Name: "phase", Value: strconv.Itoa(h.phase)}, {Name: "replies", Value: strconv.Itoa(h.replies)}}
}

// Step implements sim.Node.
func (h hs) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case Elect:
		h = h.wake(&out)
	case sim.Deliver:
		switch m := e.Message.(type) {
		case hsProbe:
			h = h.wake(&out)
			h = h.probe(m, e.Via, &out)
		case hsReply:
			h = h.reply(m, e.Via, &out)
		case leaderMessage:
			h.leader = passLeader(h.self, h.leader, m, &out)
		}
	}
	return h, out
}

func (h hs) wake(out *sim.Output) hs {
	if !h.awake {
		h.awake = true
		h.send(out)
	}
	return h
}

func (h hs) send(out *sim.Output) {
	probe := hsProbe{id: h.self, phase: h.phase, hops: 1}
	out.SendRing(sim.Clockwise, probe)
	out.SendRing(sim.CounterClockwise, probe)
}

func (h hs) probe(m hsProbe, via sim.Route, out *sim.Output) hs {
	switch {
	case m.id == h.self:
		// Both probes of the last phase come round; the first one decides.
		if h.leader != h.self {
			h.leader = h.self
			out.Note(FactLeader, h.self, 0)
			out.SendRing(sim.Clockwise, leaderMessage{h.self})
		}
	case m.id > h.self && m.hops < 1<<m.phase:
		m.hops++
		out.SendRing(via, m)
	case m.id > h.self:
		out.SendRing(opposite(via), hsReply{id: m.id, phase: m.phase})
	}
	return h
}

func (h hs) reply(m hsReply, via sim.Route, out *sim.Output) hs {
	if m.id != h.self {
		out.SendRing(via, m)
		return h
	}
	if m.phase != h.phase {
		return h // a duplicate of an earlier phase
	}
	h.replies++
	if h.replies == 2 {
		h.replies = 0
		out.Note(FactWinner, sim.None, h.phase)
		h.phase++
		h.send(out)
	}
	return h
}

func opposite(via sim.Route) sim.Route {
	if via == sim.Clockwise {
		return sim.CounterClockwise
	}
	return sim.Clockwise
}
