package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// The kinds of states to look for.
const (
	TwoLeaders = "two-leaders" // two that are up lead at the same moment
	Disagree   = "disagree"    // nothing more can happen, and those that are up hold two leaders, or a dead one
	NoLeader   = "no-leader"   // nothing more can happen, and a process that is up holds no leader
	TwoInside  = "two-inside"  // two that are up are in the critical section
	Deadlock   = "deadlock"    // nothing more can happen, and a process that is up waits
	Endless    = "endless"     // the run continues forever, and never becomes well; see endless.go
)

// Limits.
const (
	// MaxProcesses that may be explored.
	MaxProcesses = 6
	// DefaultStates bounds the memory of a search, at about a kilobyte each, and its time.
	DefaultStates = 200_000
)

// Config of a search. One of Election and Mutex is given.
type Config struct {
	Election *election.Config
	Mutex    *mutex.Config
	// Find stops at the first state of that kind; empty goes through all.
	Find string
	// Timely lets timers run out only when no message is under way.
	Timely bool
	// Reorder lets messages overtake one another on a link.
	Reorder bool
	// Crashes and Losses are how many there may be, at any moment.
	Crashes, Losses int
	// States at most to be looked at; default DefaultStates.
	States int
}

// Found is a kind of broken promise that can be reached.
type Found struct {
	Kind   string `json:"kind"`
	States int    `json:"states"` // how many of those looked at
	Steps  int    `json:"steps"`  // of the shortest run
	Text   string `json:"text"`

	state int
}

// Result is the result of a search.
type Result struct {
	Algorithm string       `json:"algorithm"`
	N         int          `json:"n"`
	Messages  sim.Messages `json:"messages"` // of the run drawn
	Time      *float64     `json:"time"`     // steps of the run drawn
	Leader    *sim.ID      `json:"leader"`
	Safe      bool         `json:"safe"`
	Live      bool         `json:"live"`
	Seed      uint64       `json:"seed"`
	States    int          `json:"states"`
	Final     int          `json:"final"` // states in which nothing more can happen
	// Complete: there is nothing that was not looked at.
	Complete   bool            `json:"complete"`
	Found      []Found         `json:"found"`
	Violations []sim.Violation `json:"violations"`
	Records    []sim.Record    `json:"-"`
	Ring       []sim.ID        `json:"-"`
	Service    bool            `json:"-"`
}

// visited is how a state was reached first.
type visited struct {
	parent int
	by     choice
	depth  int
}

type searcher struct {
	config  Config
	ids     []sim.ID // of the members
	ring    []int    // places of the peers, clockwise
	detects bool
	terms   bool
	informs bool
	intern  intern
	watch   watcher
	states  []visited
	after   [][]int32 // of each state its successors, without faults
	well    []bool    // of each state: nothing more can happen, or all is well
}

// Search explores.
func Search(c Config) (Result, error) {
	s, first, r, err := prepare(&c)
	if err != nil {
		return r, err
	}
	seen := map[string]int32{first.key(): 0}
	s.states = []visited{{parent: -1}}
	worlds := []*world{first}
	found := map[string]*Found{}
	r.Complete = true
	for at := 0; at < len(worlds); at++ {
		w := worlds[at]
		worlds[at] = nil
		next := s.choices(w)
		if isFinal(next) {
			r.Final++
		}
		for _, kind := range s.kinds(w, isFinal(next)) {
			s.note(found, at, kind)
		}
		s.after, s.well = append(s.after, nil), append(s.well, isFinal(next) || s.good(w))
		if c.Find != "" && found[c.Find] != nil {
			r.Complete = false
			break
		}
		for _, by := range next {
			if len(worlds) >= c.States {
				r.Complete = false
				break
			}
			after := s.apply(w, by)
			key := after.key()
			place, known := seen[key]
			if !known {
				place = int32(len(worlds))
				seen[key] = place
				worlds = append(worlds, after)
				s.states = append(s.states, visited{at, by, s.states[at].depth + 1})
			}
			if by.kind != crash && by.kind != drop {
				s.after[at] = append(s.after[at], place)
			}
		}
	}
	r.States = len(s.states)
	if r.Complete {
		s.endless(found)
	}
	for _, f := range found {
		r.Found = append(r.Found, *f)
	}
	slices.SortFunc(r.Found, func(a, b Found) int { return cmp.Or(a.Steps-b.Steps, strings.Compare(a.Kind, b.Kind)) })
	s.draw(&r, c.Find, first)
	return r, nil
}

// note counts a state of a kind; the first one is the nearest.
func (s *searcher) note(found map[string]*Found, at int, kind [2]string) {
	f := found[kind[0]]
	if f == nil {
		f = &Found{Kind: kind[0], Steps: s.states[at].depth, Text: kind[1], state: at}
		found[kind[0]] = f
	}
	f.States++
}

// isFinal reports whether only faults are left to happen.
func isFinal(next []choice) bool {
	return !slices.ContainsFunc(next, func(c choice) bool { return c.kind != crash && c.kind != drop })
}

// kinds returns the violations in a state: kind and sentence.
func (s *searcher) kinds(w *world, final bool) (all [][2]string) {
	leading := s.leading(w)
	for i, a := range leading {
		for _, b := range leading[:i] {
			if !s.terms || w.terms[a] == w.terms[b] {
				all = append(all, [2]string{TwoLeaders, fmt.Sprintf("%v and %v both lead", s.ids[b], s.ids[a])})
			}
		}
	}
	var within, waiting, without, held []sim.ID
	for i, id := range s.ids {
		if w.down[i] || id == sim.Service {
			continue
		}
		if w.inside[i] {
			within = append(within, id)
		}
		if w.wants[i] {
			waiting = append(waiting, id)
		}
		if w.leaders[i] == sim.None {
			without = append(without, id)
		} else if !slices.Contains(held, w.leaders[i]) {
			held = append(held, w.leaders[i])
		}
	}
	if len(within) > 1 {
		all = append(all, [2]string{TwoInside, fmt.Sprintf("%v are inside", within)})
	}
	if !final {
		return all[:min(len(all), 1)]
	}
	if len(waiting) > 0 {
		all = append(all, [2]string{Deadlock, fmt.Sprintf("%v wait, and nothing can happen any more", waiting)})
	}
	if s.config.Election == nil {
		return all
	}
	dead := slices.ContainsFunc(held, func(id sim.ID) bool { return w.down[slices.Index(s.ids, id)] })
	if len(held) > 1 || dead {
		slices.Sort(held)
		all = append(all, [2]string{Disagree, fmt.Sprintf("the leaders held are %v at the end", held)})
	}
	if len(without) > 0 {
		all = append(all, [2]string{NoLeader, fmt.Sprintf("%v hold no leader at the end", without)})
	}
	return all
}

// prepare builds the first world.
func prepare(c *Config) (*searcher, *world, Result, error) {
	s := &searcher{watch: silent{}, intern: intern{numbers: map[string]int{}}}
	r := Result{Found: []Found{}, Violations: []sim.Violation{}, Messages: sim.Messages{ByType: map[string]int{}}}
	if c.States == 0 {
		c.States = DefaultStates
	}
	if c.Crashes < 0 || c.Losses < 0 || c.States < 1 {
		return nil, nil, r, fmt.Errorf("%d crashes, %d losses, %d states: want 0 or more, and 1 or more states",
			c.Crashes, c.Losses, c.States)
	}
	members, err := c.members(s, &r)
	if err != nil {
		return nil, nil, r, err
	}
	n := len(members)
	w := &world{nodes: make([]sim.Node, n), node: make([]int, n), down: make([]bool, n), links: make([][]int, n*n),
		timers: make([][]int, n), leaders: make([]sim.ID, n), terms: make([]int, n), inside: make([]bool, n),
		wants: make([]bool, n), turns: make([]int, n), crashes: c.Crashes, losses: c.Losses}
	for i, m := range members {
		w.nodes[i], w.leaders[i] = m.Node, sim.None
		s.ids = append(s.ids, m.ID)
		if m.ID == sim.Service {
			r.Service = true
			continue
		}
		s.ring = append(s.ring, i)
		r.Ring = append(r.Ring, m.ID)
	}
	s.config = *c
	s.begin(w)
	return s, w, r, nil
}

func (c *Config) members(s *searcher, r *Result) ([]sim.Member, error) {
	kinds := []string{TwoInside, Deadlock, Endless}
	var members []sim.Member
	switch {
	case c.Election != nil:
		a, m, err := election.Build(c.Election)
		if err != nil {
			return nil, err
		}
		if a.Service() {
			return nil, fmt.Errorf("%s cannot be explored: its sessions live by the clock", a.Name)
		}
		for _, f := range c.Election.Faults {
			if f.At != 0 || f.Recover || !slices.Contains(c.Election.IDs, f.ID) {
				return nil, fmt.Errorf("crash of %v at %s: want processes, at time 0; later crashes come at any moment",
					f.ID, sim.FormatTime(f.At))
			}
		}
		kinds = []string{TwoLeaders, Disagree, NoLeader, Endless}
		s.informs = a.Informs()
		s.detects, s.terms, members = a.Detects() && c.Election.Detector != election.DetectorNone, a.Terms(), m
		r.Algorithm, r.N = a.Name, len(c.Election.IDs)
	case c.Mutex != nil:
		a, m, err := mutex.Build(c.Mutex)
		if err != nil {
			return nil, err
		}
		if a.Sessions() {
			return nil, fmt.Errorf("%s cannot be explored: its sessions live by the clock", a.Name)
		}
		members = m
		r.Algorithm, r.N = a.Name, len(c.Mutex.IDs)
	default:
		return nil, fmt.Errorf("nothing to explore: want an election or a lock")
	}
	if r.N > MaxProcesses {
		return nil, fmt.Errorf("%d processes: want at most %d, since the orders grow beyond all bounds", r.N,
			MaxProcesses)
	}
	if c.Find != "" && !slices.Contains(kinds, c.Find) {
		return nil, fmt.Errorf("%q cannot be found in %s: want one of %s", c.Find, r.Algorithm,
			strings.Join(kinds, ", "))
	}
	return members, nil
}

// begin starts the processes that are up, and makes the events pending that start the run, at
// any moment. Processes that crash at time 0 are down, and those that start know of it.
func (s *searcher) begin(w *world) {
	e := s.config.Election
	var known []sim.ID
	if e != nil {
		for _, f := range e.Faults {
			w.down[slices.Index(s.ids, f.ID)] = true
			known = append(known, f.ID)
		}
	}
	slices.Sort(known)
	for i := range s.ids {
		if !w.down[i] {
			s.step(w, i, sim.Start{})
		}
	}
	if e != nil {
		for _, i := range e.Starters() {
			s.pend(w, slices.Index(s.ids, i.ID), election.Elect{Suspected: known})
		}
		return
	}
	for _, id := range s.config.Mutex.Requesters {
		i := slices.Index(s.ids, id)
		w.turns[i] = s.config.Mutex.Requests - 1
		s.pend(w, i, mutex.Request{})
	}
}
