package problem

import (
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Two-phase commit: J. Gray, "Notes on Data Base Operating Systems", 1978. The first process
// coordinates: it asks all to prepare; each votes; with every vote yes it decides to commit,
// else to abort, and announces that. A process that has voted yes may no longer decide alone:
// if the coordinator crashes now, it is in doubt until the coordinator recovers.

const (
	nameTwoPhase = "two-phase-commit"
	namePrimary  = "primary-backup"
	nameDeadlock = "deadlock"
)

type word string

func (w word) Type() string   { return string(w) }
func (w word) String() string { return string(w) }

const (
	wordPrepare = word("prepare")
	wordYes     = word("yes")
	wordNo      = word("no")
	wordCommit  = word("commit")
	wordAbort   = word("abort")
)

// Facts of commitment.
const (
	factCommits = "commits"
	factAborts  = "aborts"
	factInDoubt = "is in doubt"
)

// phaseTwo is the state of a coordinator or participant. On disk: all of it but votes.
type phaseTwo struct {
	self     sim.ID
	others   []sim.ID // of the coordinator; nil for a participant
	against  bool
	patience time.Duration
	state    string // working, prepared (in doubt), committed, aborted
	votes    []sim.ID
}

// Show implements sim.Shower.
func (p phaseTwo) Show() []sim.Variable {
	return []sim.Variable{{Name: "state", Value: p.state}}
}

// Step implements sim.Node.
func (p phaseTwo) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case Begin:
		p.tell(wordPrepare, &out)
		out.SetTimer("votes", p.patience)
	case sim.Recover:
		if p.others != nil { // an undecided transaction is aborted
			if p.state == "working" {
				p.decide(factAborts, "aborted", &out)
			}
			p.tell(map[string]word{"committed": wordCommit, "aborted": wordAbort}[p.state], &out)
		}
	case sim.Timeout:
		if p.state == "working" { // a vote is missing
			p.decide(factAborts, "aborted", &out)
			p.tell(wordAbort, &out)
		}
	case sim.Deliver:
		p.receive(e.From, e.Message.(word), &out)
	}
	return p, out
}

func (p *phaseTwo) tell(w word, out *sim.Output) {
	for _, id := range p.others {
		out.Send(id, w)
	}
}

func (p *phaseTwo) decide(fact, state string, out *sim.Output) {
	if p.state != state {
		p.state = state
		out.Note(fact, sim.None, 0)
	}
}

func (p *phaseTwo) receive(from sim.ID, w word, out *sim.Output) {
	switch w {
	case wordPrepare:
		if p.state != "working" {
			return
		}
		if p.against {
			p.decide(factAborts, "aborted", out)
			out.Send(from, wordNo)
			return
		}
		p.state = "prepared"
		out.Note(factInDoubt, sim.None, 0)
		out.Send(from, wordYes)
	case wordYes, wordNo:
		if p.state != "working" || slices.Contains(p.votes, from) {
			return
		}
		p.votes = append(slices.Clone(p.votes), from)
		if w == wordNo {
			p.decide(factAborts, "aborted", out)
			p.tell(wordAbort, out)
		} else if len(p.votes) == len(p.others) {
			p.decide(factCommits, "committed", out)
			p.tell(wordCommit, out)
		}
	case wordCommit:
		p.decide(factCommits, "committed", out)
	case wordAbort:
		p.decide(factAborts, "aborted", out)
	}
}

func twoPhaseCommit() Problem {
	return Problem{Name: nameTwoPhase, Title: "Two-phase commit", N: 4, Least: 2, topology: "mesh",
		use: sim.Use{Types: []string{string(wordPrepare), string(wordYes), string(wordNo), string(wordCommit),
			string(wordAbort)}},
		build: func(c Config, place int) sim.Node {
			p := phaseTwo{self: c.IDs[place], state: "working", patience: 2 * c.Network.Delay.Max,
				against: slices.Contains(c.Against, c.IDs[place])}
			if place == 0 {
				p.others = c.IDs[1:]
			}
			return p
		},
		begin: func(r *run) { r.sim.Command(0, r.config.IDs[0], Begin{}) },
		judge: func(r *run) { r.judgeDecisions(3 * (len(r.config.IDs) - 1)) }}
}

// judgeDecisions: no process commits what another aborts, and all that are up decide.
func (r *run) judgeDecisions(formula int) {
	commits, aborts := r.stated(factCommits), r.stated(factAborts)
	for _, a := range r.config.IDs {
		for _, b := range r.config.IDs {
			when, committed := commits[a]
			other, aborted := aborts[b]
			if committed && aborted {
				r.violate(max(when, other), "%v commits and %v aborts", a, b)
			}
		}
	}
	var waiting []sim.ID
	for _, id := range r.config.IDs {
		_, committed := commits[id]
		_, aborted := aborts[id]
		if r.sim.Up(id) && !committed && !aborted {
			waiting = append(waiting, id)
		}
	}
	if r.result.Live = len(waiting) == 0; !r.result.Live {
		r.measure("undecided for ever", "%v", waiting)
	}
	r.measure("messages without faults", "3(N-1) = %d", formula)
}
