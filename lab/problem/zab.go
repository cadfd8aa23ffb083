package problem

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// The atomic broadcast of ZooKeeper with one proposal: F. Junqueira, B. Reed and M. Serafini,
// "Zab: High-performance broadcast for primary-backup systems", DSN 2011. The first process
// leads epoch 1. It sends its proposal; a majority of acknowledgements commits it. When the
// leader fails, the next process opens a new epoch: it asks a majority for what they have
// accepted, takes the newest, proposes it, and commits it with a majority. So a process that
// has accepted waits only while there is no majority.

type zabMessage struct {
	kind     string
	epoch    int
	accepted int // epoch in which the value below was accepted, 0 for none
	value    int // 1 the proposal, 0 nothing
}

func (m zabMessage) Type() string   { return m.kind }
func (m zabMessage) String() string { return fmt.Sprintf("%s, epoch %d", m.kind, m.epoch) }

// Types of its messages.
const (
	zabEpoch    = "epoch"
	zabHistory  = "history"
	zabProposal = "proposal"
	zabAck      = "ack"
	zabCommit   = "commit"
)

// zabNode is the state of one process. On disk: epoch, accepted, value, committed.
type zabNode struct {
	self      sim.ID
	peers     []sim.ID
	epoch     int // promised
	accepted  int // epoch of the value
	value     int
	committed bool
	leads     int // epoch that it leads, 0 for none
	proposed  bool
	heard     []sim.ID // the processes that answered in that epoch: histories, then acks
	newest    zabMessage
	suspected []sim.ID
}

// Show implements sim.Shower.
func (z zabNode) Show() []sim.Variable {
	accepted := "-"
	if z.accepted > 0 {
		accepted = fmt.Sprintf("in epoch %d", z.accepted)
	}
	state := map[bool]string{true: "committed", false: "open"}[z.committed]
	return []sim.Variable{{Name: "epoch", Value: fmt.Sprint(z.epoch)}, {Name: "accepted", Value: accepted},
		{Name: "state", Value: state}, {Name: "leads", Value: map[bool]string{true: "yes", false: "no"}[z.leads > 0]}}
}

// Step implements sim.Node.
func (z zabNode) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case Begin:
		z.epoch, z.leads = 1, 1
		out.Note("leader", z.self, 1)
		z.propose(1, &out)
	case Suspect:
		z.suspected = append(slices.Clone(z.suspected), e.ID)
		z.takeOver(&out)
	case Trust:
		z.suspected = slices.DeleteFunc(slices.Clone(z.suspected), func(id sim.ID) bool { return id == e.ID })
		if z.committed { // it may have missed the commit
			out.Send(e.ID, zabMessage{zabCommit, z.epoch, z.accepted, z.value})
		}
	case sim.Recover:
		z.leads, z.heard, z.suspected = 0, nil, nil
	case sim.Deliver:
		z.receive(e.From, e.Message.(zabMessage), &out)
	}
	return z, out
}

// takeOver opens a new epoch if all processes before it are down.
func (z *zabNode) takeOver(out *sim.Output) {
	at := slices.Index(z.peers, z.self)
	for _, id := range z.peers[:at] {
		if !slices.Contains(z.suspected, id) {
			return
		}
	}
	if z.committed || at == 0 {
		return
	}
	z.epoch += len(z.peers) - z.epoch%len(z.peers) + at // no two processes have the same
	z.leads, z.proposed, z.heard = z.epoch, false, []sim.ID{z.self}
	z.newest = zabMessage{accepted: z.accepted, value: z.value}
	out.Note("leader", z.self, z.epoch)
	z.tell(zabMessage{kind: zabEpoch, epoch: z.epoch}, out)
	z.count(out)
}

func (z *zabNode) tell(m zabMessage, out *sim.Output) {
	for _, id := range z.peers {
		if id != z.self {
			out.Send(id, m)
		}
	}
}

func (z *zabNode) propose(value int, out *sim.Output) {
	z.accepted, z.value, z.proposed, z.heard = z.leads, value, true, []sim.ID{z.self}
	z.tell(zabMessage{zabProposal, z.leads, z.leads, value}, out)
	z.count(out)
}

// count continues when a majority has answered.
func (z *zabNode) count(out *sim.Output) {
	if z.leads == 0 || len(z.heard) < len(z.peers)/2+1 || z.committed {
		return
	}
	if !z.proposed {
		z.propose(z.newest.value, out)
		return
	}
	z.commit(out)
	z.tell(zabMessage{zabCommit, z.leads, z.accepted, z.value}, out)
}

func (z *zabNode) commit(out *sim.Output) {
	if z.committed {
		return
	}
	z.committed = true
	if z.value == 1 {
		out.Note(factCommits, sim.None, 0)
	} else {
		out.Note(factAborts, sim.None, 0)
	}
}

func (z *zabNode) receive(from sim.ID, m zabMessage, out *sim.Output) {
	switch m.kind {
	case zabHistory, zabAck:
		if m.epoch == z.leads && (m.kind == zabAck) == z.proposed && !slices.Contains(z.heard, from) {
			z.heard = append(slices.Clone(z.heard), from)
			if m.accepted > z.newest.accepted {
				z.newest = m
			}
			z.count(out)
		}
		return
	case zabCommit:
		if !z.committed {
			z.accepted, z.value = m.accepted, m.value
			z.commit(out)
		}
		return
	}
	if m.epoch < z.epoch {
		return // of a leader that has been replaced
	}
	if z.epoch = m.epoch; z.leads != m.epoch {
		z.leads = 0
	}
	if m.kind == zabEpoch {
		out.Send(from, zabMessage{zabHistory, z.epoch, z.accepted, z.value})
		return
	}
	z.accepted, z.value = m.epoch, m.value
	out.Send(from, zabMessage{kind: zabAck, epoch: m.epoch})
}

func zab() Problem {
	return Problem{Name: "zab", Title: "Atomic broadcast as in ZooKeeper, one proposal", N: 4, Least: 2,
		topology: "mesh", detects: true,
		use:   sim.Use{Types: []string{zabEpoch, zabHistory, zabProposal, zabAck, zabCommit}},
		build: func(c Config, place int) sim.Node { return zabNode{self: c.IDs[place], peers: c.IDs} },
		begin: func(r *run) { r.sim.Command(0, r.config.IDs[0], Begin{}) },
		judge: func(r *run) { r.judgeDecisions(3 * (len(r.config.IDs) - 1)) }}
}
