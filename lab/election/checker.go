package election

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// maxViolations bounds how many violations a run lists; the first ones suffice, and an
// algorithm that is broken forever would list without end.
const maxViolations = 20

// beforeRun is since when processes are up that are up at the start: long before.
const beforeRun = -1 << 60 * time.Nanosecond

// checker observes a run and judges it; see the package comment for the promises.
type checker struct {
	algorithm Algorithm
	value     func(sim.ID) float64 // attribute
	ids       []sim.ID
	takeover  time.Duration // how long two processes may lead
	window    time.Duration // how long the election of a declared leader lasted

	upSince    map[sim.ID]time.Duration // absent when down
	held       map[sim.ID]sim.ID
	terms      map[int]sim.ID // the leader of a term
	leaders    []sim.ID       // processes that are up and lead, by their own account
	since      map[sim.ID]time.Duration
	reported   bool // that overlap
	lastChange time.Duration
	changes    int // how often a process declared itself
	dirty      bool
	violations []sim.Violation
	winners    []int // of each phase, which Hirschberg-Sinclair has
}

func newChecker(a Algorithm, ids []sim.ID, value func(sim.ID) float64) *checker {
	c := &checker{algorithm: a, value: value, ids: ids, upSince: map[sim.ID]time.Duration{},
		held: map[sim.ID]sim.ID{}, terms: map[int]sim.ID{}, since: map[sim.ID]time.Duration{}, dirty: true}
	for _, id := range ids {
		c.upSince[id], c.held[id] = beforeRun, sim.None
	}
	return c
}

func (c *checker) violate(at time.Duration, format string, args ...any) {
	if len(c.violations) < maxViolations {
		c.violations = append(c.violations, sim.Violation{At: at, Text: fmt.Sprintf(format, args...)})
	}
}

// Observe implements sim.Observer.
func (c *checker) Observe(r sim.Record) {
	c.checkOverlap(r.At)
	switch r.Kind {
	case sim.Crashed:
		delete(c.upSince, r.Process)
		c.held[r.Process] = sim.None
		c.dirty = true
		c.lead(r.At, r.Process, false)
	case sim.Recovered:
		c.upSince[r.Process] = r.At
		c.dirty = true
	case sim.Noted:
		switch r.Fact.Name {
		case FactLeader:
			c.take(r)
		case FactWinner:
			for len(c.winners) <= r.Fact.Number {
				c.winners = append(c.winners, 0)
			}
			c.winners[r.Fact.Number]++
		}
	}
}

func (c *checker) take(r sim.Record) {
	leader := r.Fact.About
	if leader == sim.Service { // the anonymous "I"
		leader = r.Process
	}
	c.held[r.Process] = leader
	c.lastChange, c.dirty = r.At, true
	c.lead(r.At, r.Process, leader == r.Process)
	if leader != r.Process {
		return
	}
	c.changes++
	if c.algorithm.terms {
		if other, led := c.terms[r.Fact.Number]; led && other != leader {
			c.violate(r.At, "%v and %v both lead in term %d", other, leader, r.Fact.Number)
		}
		c.terms[r.Fact.Number] = leader
	}
	if c.algorithm.best {
		for _, id := range c.ids {
			since, up := c.upSince[id]
			if up && c.better(id, leader) && r.At-since >= c.window {
				c.violate(r.At, "%v declares itself leader while %v is up", leader, id)
				break
			}
		}
	}
}

func (c *checker) better(a, b sim.ID) bool {
	return c.value(a) > c.value(b) || c.value(a) == c.value(b) && a > b
}

// lead keeps the list of processes that lead by their own account.
func (c *checker) lead(at time.Duration, id sim.ID, leads bool) {
	switch {
	case !leads:
		c.leaders = without(c.leaders, id)
	case !holds(c.leaders, id):
		c.leaders = with(c.leaders, id)
		c.since[id] = at
	}
	if len(c.leaders) < 2 {
		c.reported = false
	}
}

// checkOverlap judges the time up to now. Algorithms with terms may have a deposed leader that
// does not know it yet; its term shows it.
func (c *checker) checkOverlap(now time.Duration) {
	if len(c.leaders) < 2 || c.algorithm.terms || c.reported {
		return
	}
	var starts []time.Duration
	for _, id := range c.leaders {
		starts = append(starts, c.since[id])
	}
	slices.Sort(starts)
	if now-starts[1] <= c.takeover { // those two lead together the longest
		return
	}
	c.reported = true
	c.violate(starts[1], "%v lead at the same time for longer than %s",
		c.leaders, sim.FormatTime(c.takeover))
}

// verdict is the checker's view of the present state.
type verdict struct {
	leader sim.ID // one up process all agree on, or None
	live   bool   // every up process holds a leader
	safe   bool   // so far, and in the present state
}

// judge checks which leader the up processes hold. inLine reports whether a process that need
// not know the leader has its place in the queue.
func (c *checker) judge(inLine func(sim.ID) bool) (verdict, []sim.Violation) {
	v := verdict{leader: sim.None, live: len(c.upSince) > 0, safe: true}
	var wrong []sim.Violation
	broken := func(format string, args ...any) {
		wrong = append(wrong, sim.Violation{End: true, Text: fmt.Sprintf(format, args...)})
	}
	best := sim.None
	var leaders []sim.ID
	for _, id := range c.ids {
		if _, up := c.upSince[id]; !up {
			continue
		}
		if best == sim.None || c.better(id, best) {
			best = id
		}
		held := c.held[id]
		if held != sim.None {
			leaders = with(leaders, held)
		} else if c.algorithm.informs || !inLine(id) {
			v.live = false
		}
		if c.algorithm.service && !inLine(id) {
			v.live = false // its place in the line is not sure yet
		}
	}
	if !c.algorithm.informs {
		leaders = c.leaders
		v.live = v.live && len(leaders) > 0
	}
	if len(leaders) > 1 {
		broken("the leaders held are %v", leaders)
	}
	for _, id := range leaders {
		if _, up := c.upSince[id]; !up {
			broken("%v is held as leader but is down", id)
		} else if c.algorithm.best && c.better(best, id) {
			broken("%v is leader although %v is up", id, best)
		}
	}
	v.safe = len(wrong) == 0
	if v.safe && len(leaders) == 1 {
		v.leader = leaders[0]
	}
	return v, wrong
}
