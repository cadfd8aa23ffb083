package problem

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Primary and backup: P. Alsberg and J. Day, "A Principle for Resilient Sharing of Distributed
// Resources", ICSE 1976. The first process is the primary of a bank account, the second its
// backup, the others are clients that deposit 1 at a time. The primary sends each deposit to
// its backup and confirms it when the backup has it. A backup that hears nothing for five
// message times becomes the primary; a primary whose backup does not answer for three continues
// alone. Both are timeouts: in a partition both happen, and then there are two accounts.

type depositMessage struct {
	kind   string
	client sim.ID
	number int
}

func (m depositMessage) Type() string { return m.kind }
func (m depositMessage) String() string {
	if m.number == 0 {
		return m.kind
	}
	return fmt.Sprintf("%s %d of %v", m.kind, m.number, m.client)
}

// beatMessage shows that the primary is alive.
type beatMessage struct{ depositMessage }

// Background implements sim.Background.
func (beatMessage) Background() {}

// Types of its messages.
const (
	moneyDeposit   = "deposit"
	moneyUpdate    = "update"
	moneyUpdated   = "updated"
	moneyConfirmed = "confirmed"
	moneyPrimary   = "primary"
	moneyBeat      = "beat"
)

// factConfirmed is that a client's deposit Number is confirmed.
const factConfirmed = "confirmed"

// replica is the primary or the backup. On disk: nothing, so that one that recovers takes no
// part in it.
type replica struct {
	self, other sim.ID
	clients     []sim.ID
	bound       time.Duration
	early       bool
	role        string // primary, backup or none
	alone       bool   // a primary that no longer has a backup
	done        []depositMessage
	owed        []depositMessage // not confirmed before the backup has them
}

// Show implements sim.Shower.
func (p replica) Show() []sim.Variable {
	role := p.role
	if p.alone {
		role += ", alone"
	}
	return []sim.Variable{{Name: "role", Value: role}, {Name: "balance", Value: fmt.Sprint(len(p.done))},
		{Name: "not confirmed", Value: fmt.Sprint(len(p.owed))}}
}

// Step implements sim.Node.
func (p replica) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case sim.Start:
		if p.role == "primary" {
			out.Note("leader", p.self, 0)
			p.beat(&out)
		} else {
			out.SetTimer("silence", 5*p.bound)
		}
	case sim.Recover:
		p.role, p.alone, p.done, p.owed = "none", false, nil, nil
	case sim.Timeout:
		p.timeout(e.Name, &out)
	case sim.Deliver:
		if m, ok := e.Message.(depositMessage); ok {
			p.receive(e.From, m, &out)
		} else if p.role == "backup" {
			out.SetTimer("silence", 5*p.bound)
		}
	}
	return p, out
}

func (p *replica) beat(out *sim.Output) {
	if !p.alone {
		out.Send(p.other, beatMessage{depositMessage{kind: moneyBeat}})
		out.SetTimer("beat", 2*p.bound)
	}
}

func (p *replica) timeout(name string, out *sim.Output) {
	switch name {
	case "beat":
		p.beat(out)
	case "silence":
		p.role, p.alone = "primary", true
		out.Note("leader", p.self, 0)
		for _, id := range p.clients {
			out.Send(id, depositMessage{kind: moneyPrimary})
		}
	default: // the backup does not answer
		p.alone = true
		p.settle(out)
	}
}

func (p *replica) receive(from sim.ID, m depositMessage, out *sim.Output) {
	switch m.kind {
	case moneyDeposit:
		if p.role != "primary" {
			return
		}
		if !slices.Contains(p.done, m) {
			p.done = append(slices.Clone(p.done), m)
			p.owed = append(slices.Clone(p.owed), m)
			if !p.alone {
				out.Send(p.other, depositMessage{moneyUpdate, m.client, m.number})
				out.SetTimer("backup", 3*p.bound)
			}
			if p.alone || p.early {
				p.settle(out)
			}
		} else if !slices.Contains(p.owed, m) {
			out.Send(m.client, depositMessage{moneyConfirmed, m.client, m.number})
		}
	case moneyUpdate:
		if p.role == "backup" {
			deposit := depositMessage{moneyDeposit, m.client, m.number}
			if !slices.Contains(p.done, deposit) {
				p.done = append(slices.Clone(p.done), deposit)
			}
			out.Send(from, depositMessage{moneyUpdated, m.client, m.number})
			out.SetTimer("silence", 5*p.bound)
		}
	case moneyUpdated:
		out.CancelTimer("backup")
		p.settle(out)
	}
}

// settle confirms the waiting deposits: links are first-in first-out, so an answer of the
// backup covers all earlier messages to it.
func (p *replica) settle(out *sim.Output) {
	for _, m := range p.owed {
		out.Send(m.client, depositMessage{moneyConfirmed, m.client, m.number})
	}
	p.owed = nil
}

// depositor is a client.
type depositor struct {
	self      sim.ID
	primary   sim.ID
	bound     time.Duration
	of        int
	confirmed int
}

// Show implements sim.Shower.
func (d depositor) Show() []sim.Variable {
	return []sim.Variable{{Name: "primary", Value: d.primary.String()},
		{Name: "confirmed", Value: fmt.Sprintf("%d of %d", d.confirmed, d.of)}}
}

// Step implements sim.Node.
func (d depositor) Step(_ time.Duration, event sim.Event) (sim.Node, sim.Output) {
	var out sim.Output
	switch e := event.(type) {
	case Begin, sim.Timeout, sim.Recover:
		d.ask(&out)
	case sim.Deliver:
		switch m := e.Message.(depositMessage); m.kind {
		case moneyPrimary:
			d.primary = e.From
			d.ask(&out)
		case moneyConfirmed:
			if m.number == d.confirmed+1 {
				d.confirmed++
				out.Note(factConfirmed, sim.None, m.number)
				out.CancelTimer("retry")
				d.ask(&out)
			}
		}
	}
	return d, out
}

func (d *depositor) ask(out *sim.Output) {
	if d.confirmed < d.of {
		out.Send(d.primary, depositMessage{moneyDeposit, d.self, d.confirmed + 1})
		out.SetTimer("retry", 6*d.bound)
	}
}

func primaryBackup() Problem {
	return Problem{Name: namePrimary, Title: "Primary and backup of an account", N: 4, Least: 3, topology: "mesh",
		use: sim.Use{Types: []string{moneyDeposit, moneyUpdate, moneyUpdated, moneyConfirmed, moneyPrimary, moneyBeat}},
		build: func(c Config, place int) sim.Node {
			bound := c.Network.Delay.Max
			if place > 1 {
				return depositor{self: c.IDs[place], primary: c.IDs[0], bound: bound, of: c.Rounds}
			}
			return replica{self: c.IDs[place], other: c.IDs[1-place], clients: c.IDs[2:], bound: bound, early: c.Early,
				role: [2]string{"primary", "backup"}[place]}
		},
		begin: func(r *run) {
			for _, id := range r.config.IDs[2:] {
				r.sim.Command(0, id, Begin{})
			}
		},
		judge: judgeAccount,
		settled: func(r *run) bool {
			return !slices.ContainsFunc(r.config.IDs[2:], func(id sim.ID) bool {
				d := r.sim.Node(id).(depositor)
				return r.sim.Up(id) && d.confirmed < d.of
			})
		}}
}

// judgeAccount: a confirmed deposit is in the account of every primary that is up, there
// is one such primary, and all deposits of clients that are up get confirmed.
func judgeAccount(r *run) {
	var primaries []sim.ID
	for _, id := range r.config.IDs[:2] {
		p := r.sim.Node(id).(replica)
		if !r.sim.Up(id) || p.role != "primary" {
			continue
		}
		primaries = append(primaries, id)
		r.measure(fmt.Sprintf("balance at %v", id), "%d", len(p.done))
		for _, f := range r.facts {
			deposit := depositMessage{moneyDeposit, f.Process, f.Fact.Number}
			if f.Fact.Name == factConfirmed && !slices.Contains(p.done, deposit) {
				r.atEnd("%v does not have deposit %d of %v, which was confirmed at %s", id, f.Fact.Number, f.Process,
					sim.FormatTime(f.At))
			}
		}
	}
	if len(primaries) > 1 {
		r.atEnd("%v are both primary", primaries)
	}
	confirmed := 0
	for _, id := range r.config.IDs[2:] {
		d := r.sim.Node(id).(depositor)
		confirmed += d.confirmed
		if r.sim.Up(id) && d.confirmed < d.of {
			r.result.Live = false
		}
	}
	r.measure("deposits confirmed", "%d", confirmed)
}
