package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// Tasks.
const (
	Election = "election"
	Mutex    = "mutex"
)

// Case is one run: its processes, initiators and faults.
type Case struct {
	Election *election.Config
	Mutex    *mutex.Config
}

// clone copies the parts that a smaller case changes.
func (c Case) clone() Case {
	if c.Election != nil {
		e := *c.Election
		e.IDs, e.Initiators, e.Faults = slices.Clone(e.IDs), slices.Clone(e.Initiators), slices.Clone(e.Faults)
		e.Network.Drop, e.Network.Duplicate = slices.Clone(e.Network.Drop), slices.Clone(e.Network.Duplicate)
		return Case{Election: &e}
	}
	m := *c.Mutex
	m.IDs, m.Requesters, m.Faults = slices.Clone(m.IDs), slices.Clone(m.Requesters), slices.Clone(m.Faults)
	m.Network.Drop, m.Network.Duplicate = slices.Clone(m.Network.Drop), slices.Clone(m.Network.Duplicate)
	return Case{Mutex: &m}
}

func (c Case) ids() *[]sim.ID {
	if c.Election != nil {
		return &c.Election.IDs
	}
	return &c.Mutex.IDs
}

func (c Case) faults() *[]sim.Fault {
	if c.Election != nil {
		return &c.Election.Faults
	}
	return &c.Mutex.Faults
}

func (c Case) network() *sim.Network {
	if c.Election != nil {
		return &c.Election.Network
	}
	return &c.Mutex.Network
}

// String writes the case as options of the lab's commands.
func (c Case) String() string {
	var words []string
	add := func(name, value string) { words = append(words, "--"+name, value) }
	add("ids", join(*c.ids(), func(id sim.ID) string { return fmt.Sprint(int(id)) }))
	if c.Election != nil {
		add("initiator", join(c.Election.Initiators, func(i election.Initiator) string {
			if i.At == 0 {
				return fmt.Sprint(int(i.ID))
			}
			return fmt.Sprintf("%d@%s", int(i.ID), sim.FormatTime(i.At))
		}))
	} else {
		m := c.Mutex
		if len(m.Requesters) > 0 {
			add("requester", join(m.Requesters, func(id sim.ID) string { return fmt.Sprint(int(id)) }))
		}
		if m.Spacing > 0 {
			add("spacing", sim.FormatTime(m.Spacing))
		}
		if m.Requests > 1 {
			add("requests", fmt.Sprint(m.Requests))
		}
	}
	for _, f := range *c.faults() {
		name := map[bool]string{true: "recover", false: "crash"}[f.Recover]
		add(name, fmt.Sprintf("%d@%s", int(f.ID), sim.FormatTime(f.At)))
	}
	return strings.Join(append(words, c.networkWords()...), " ")
}

func (c Case) networkWords() (words []string) {
	n := c.network()
	nth := func(p sim.Nth) string { return fmt.Sprintf("%s@%d", p.Type, p.K) }
	if len(n.Drop) > 0 {
		words = append(words, "--drop", join(n.Drop, nth))
	}
	if len(n.Duplicate) > 0 {
		words = append(words, "--duplicate", join(n.Duplicate, nth))
	}
	if n.Loss > 0 {
		words = append(words, "--loss", fmt.Sprint(n.Loss))
	}
	if n.Duplication > 0 {
		words = append(words, "--duplication", fmt.Sprint(n.Duplication))
	}
	if n.Reorder {
		words = append(words, "--reorder")
	}
	unit := sim.Delay{Min: sim.Unit, Max: sim.Unit}
	if d := n.Delay; d != (sim.Delay{}) && d != unit {
		words = append(words, "--delay", sim.FormatTime(d.Min)+"-"+sim.FormatTime(d.Max),
			"--seed", fmt.Sprint(c.seed()))
	} else if n.Loss > 0 || n.Duplication > 0 {
		words = append(words, "--seed", fmt.Sprint(c.seed()))
	}
	return words
}

func (c Case) seed() uint64 {
	if c.Election != nil {
		return c.Election.Seed
	}
	return c.Mutex.Seed
}

func join[T any](list []T, text func(T) string) string {
	var texts []string
	for _, v := range list {
		texts = append(texts, text(v))
	}
	return strings.Join(texts, ",")
}

// random makes cases from a seed.
type random struct{ state sim.Random }

func (r *random) next(bound int) int {
	var draw int64
	draw, r.state = r.state.Next(int64(bound))
	return int(draw)
}

// generate makes the case of a seed: the first ones are without faults, so that their messages
// can be counted.
func (c Config) generate(seed uint64) Case {
	r := &random{sim.Random(seed)}
	n := 2 + r.next(c.N-1)
	ids := make([]sim.ID, 0, n)
	for len(ids) < n {
		if id := sim.ID(1 + r.next(9*n)); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	network := sim.Network{Loss: c.Loss, Duplication: c.Duplication, Reorder: c.Reorder}
	quiet := seed%3 == 0
	if quiet {
		network = sim.Network{}
	} else {
		network.Delay = sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}
	}
	if c.Task == Mutex {
		m := &mutex.Config{IDs: ids, Network: network, Seed: seed, Requests: 1 + r.next(3),
			Spacing: time.Duration(r.next(4)) * sim.Unit / 2}
		if !quiet {
			m.Faults = c.crashes(r, ids, 0)
		}
		return Case{Mutex: m}
	}
	e := &election.Config{IDs: ids, Network: network, Seed: seed, AnyLeader: c.AnyLeader}
	last := time.Duration(0)
	for i, id := range ids {
		if i == 0 || r.next(3) == 0 {
			at := time.Duration(r.next(3)) * sim.Unit
			e.Initiators = append(e.Initiators, election.Initiator{ID: id, At: at})
			last = max(last, at)
		}
	}
	if c.Crashes > 0 && len(e.Initiators) < n && r.next(2) == 0 { // the premise: the best has failed
		best := slices.Max(ids)
		if !slices.ContainsFunc(e.Initiators, func(i election.Initiator) bool { return i.ID == best }) {
			e.Faults = append(e.Faults, sim.Fault{ID: best})
		}
	}
	if !quiet {
		e.Faults = append(e.Faults, c.crashes(r, ids, last)...)
	}
	return Case{Election: e}
}

// crashes are after a time, of different processes, and leave one up.
func (c Config) crashes(r *random, ids []sim.ID, after time.Duration) (faults []sim.Fault) {
	for _, id := range ids[1:] {
		if len(faults) >= c.Crashes || r.next(3) > 0 {
			continue
		}
		at := after + time.Duration(1+r.next(8000))*sim.Unit/1000
		faults = append(faults, sim.Fault{ID: id, At: at})
		if c.Recoveries && r.next(2) == 0 {
			back := at + time.Duration(1+r.next(20000))*sim.Unit/1000
			faults = append(faults, sim.Fault{ID: id, At: back, Recover: true})
		}
	}
	return faults
}
