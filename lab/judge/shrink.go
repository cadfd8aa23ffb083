package judge

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// maxShrinks bounds the runs made to find a smaller one.
const maxShrinks = 400

// shrink tries smaller cases that fail in the same way, until none does.
func (j *judge) shrink(ctx context.Context, c Case, v verdict) (Case, verdict, int, error) {
	tried := 0
	for again := true; again; {
		again = false
		for _, smaller := range append(smaller(c), scripted(c, v)...) {
			if tried >= maxShrinks {
				return c, v, tried, nil
			}
			tried++
			w, err := j.run(ctx, smaller)
			if err != nil {
				return c, v, tried, err
			}
			if w.kind == v.kind {
				c, v, again = smaller, w, true
				break
			}
		}
	}
	return c, v, tried, nil
}

// smaller are the cases that are one step simpler, the boldest first.
func smaller(c Case) (all []Case) {
	try := func(change func(Case) bool) {
		if s := c.clone(); change(s) && s.somebodyUp() {
			all = append(all, s)
		}
	}
	for _, id := range *c.ids() {
		try(func(s Case) bool { return s.without(id) })
	}
	for i := range *c.faults() {
		try(func(s Case) bool {
			*s.faults() = slices.Delete(*s.faults(), i, i+1)
			return true
		})
	}
	try(func(s Case) bool {
		n := s.network()
		noisy := n.Delay.Min != n.Delay.Max
		n.Delay = sim.Delay{}
		return noisy
	})
	for i := range c.network().Drop {
		try(func(s Case) bool { s.network().Drop = slices.Delete(s.network().Drop, i, i+1); return true })
	}
	for i := range c.network().Duplicate {
		try(func(s Case) bool { s.network().Duplicate = slices.Delete(s.network().Duplicate, i, i+1); return true })
	}
	for _, off := range []func(*sim.Network) bool{
		func(n *sim.Network) bool { was := n.Loss > 0; n.Loss = 0; return was },
		func(n *sim.Network) bool { was := n.Duplication > 0; n.Duplication = 0; return was },
		func(n *sim.Network) bool { was := n.Reorder; n.Reorder = false; return was },
	} {
		try(func(s Case) bool { return off(s.network()) })
	}
	for i := range *c.faults() {
		for _, grain := range []time.Duration{sim.Unit, sim.Unit / 2} {
			try(func(s Case) bool {
				f := &(*s.faults())[i]
				was := f.At
				f.At = f.At.Round(grain)
				return f.At != was && (f.At > 0) == (was > 0)
			})
		}
	}
	try(func(s Case) bool { return s.renamed() })
	if c.Election != nil {
		return append(all, fewerInitiators(c)...)
	}
	return append(all, fewerRequests(c)...)
}

// somebodyUp reports whether a process is up at the end: otherwise there is nothing to judge.
func (c Case) somebodyUp() bool {
	for _, id := range *c.ids() {
		crashes := 0
		for _, f := range *c.faults() {
			if f.ID == id {
				crashes += map[bool]int{true: -1, false: 1}[f.Recover]
			}
		}
		if crashes <= 0 {
			return true
		}
	}
	return false
}

func fewerInitiators(c Case) (all []Case) {
	for i, initiator := range c.Election.Initiators {
		if len(c.Election.Initiators) > 1 {
			s := c.clone()
			s.Election.Initiators = slices.Delete(s.Election.Initiators, i, i+1)
			all = append(all, s)
		}
		if initiator.At > 0 {
			s := c.clone()
			s.Election.Initiators[i].At = 0
			all = append(all, s)
		}
	}
	return all
}

func fewerRequests(c Case) (all []Case) {
	if c.Mutex.Requests > 1 {
		s := c.clone()
		s.Mutex.Requests--
		all = append(all, s)
	}
	if c.Mutex.Spacing > 0 {
		s := c.clone()
		s.Mutex.Spacing = 0
		all = append(all, s)
	}
	asking := c.Mutex.Requesters
	if len(asking) == 0 {
		asking = c.Mutex.IDs
	}
	for _, id := range asking {
		if len(asking) > 1 {
			s := c.clone()
			s.Mutex.Requesters = slices.DeleteFunc(slices.Clone(asking), func(x sim.ID) bool { return x == id })
			all = append(all, s)
		}
	}
	return all
}

// without removes a process; it returns false if there is no one left to begin.
func (c Case) without(id sim.ID) bool {
	is := func(x sim.ID) bool { return x == id }
	*c.ids() = slices.DeleteFunc(*c.ids(), is)
	*c.faults() = slices.DeleteFunc(*c.faults(), func(f sim.Fault) bool { return f.ID == id })
	if c.Election != nil {
		c.Election.Initiators = slices.DeleteFunc(c.Election.Initiators,
			func(i election.Initiator) bool { return i.ID == id })
		return len(c.Election.Initiators) > 0
	}
	asked := len(c.Mutex.Requesters)
	c.Mutex.Requesters = slices.DeleteFunc(c.Mutex.Requesters, is)
	return len(*c.ids()) > 0 && (asked == 0 || len(c.Mutex.Requesters) > 0)
}

// renamed gives the processes the ids 1 to n, in the order of the old ones.
func (c Case) renamed() (changed bool) {
	sorted := slices.Sorted(slices.Values(*c.ids()))
	to := func(id sim.ID) sim.ID {
		at, _ := slices.BinarySearch(sorted, id)
		changed = changed || int(id) != at+1
		return sim.ID(at + 1)
	}
	for i := range *c.ids() {
		(*c.ids())[i] = to((*c.ids())[i])
	}
	for i := range *c.faults() {
		(*c.faults())[i].ID = to((*c.faults())[i].ID)
	}
	if c.Election != nil {
		for i := range c.Election.Initiators {
			c.Election.Initiators[i].ID = to(c.Election.Initiators[i].ID)
		}
		return changed
	}
	for i := range c.Mutex.Requesters {
		c.Mutex.Requesters[i] = to(c.Mutex.Requesters[i])
	}
	return changed
}

// scripted replaces random losses by the same losses by name, so that they can be removed one
// by one.
func scripted(c Case, v verdict) []Case {
	if c.network().Loss == 0 {
		return nil
	}
	s := c.clone()
	s.network().Loss = 0
	sent, nth := map[string]int{}, map[int]sim.Nth{}
	for _, r := range v.records {
		switch {
		case r.Kind == sim.Sent:
			sent[r.Type]++
			nth[r.Message] = sim.Nth{Type: r.Type, K: sent[r.Type]}
		case r.Kind == sim.Lost && strings.HasSuffix(r.Label, ": lost"):
			s.network().Drop = append(s.network().Drop, nth[r.Message])
		}
	}
	return []Case{s}
}
