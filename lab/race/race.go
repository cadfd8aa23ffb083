// Package race runs two threads that share a variable in every order of their steps, and lists
// the results and the schedule that leads to each. It is the lectures' reason for mutual
// exclusion.
//
// The threads are tables of three steps, not Go code: it starts no goroutine.
package race

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Program is the steps of the two threads.
type Program struct {
	Name     string
	Variable string
	Title    string
	start    int
	change   [2]int // what each thread adds
	right    int
}

// Programs returns the lectures' two.
func Programs() []Program {
	return []Program{
		{Name: "counter", Variable: "counter", Title: "counter++ beside counter--", start: 5,
			change: [2]int{1, -1}, right: 5},
		{Name: "deposits", Variable: "balance", Title: "two deposits of 1", start: 17,
			change: [2]int{1, 1}, right: 19},
	}
}

// Lookup finds a program.
func Lookup(name string) (Program, error) {
	var names []string
	for _, p := range Programs() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Program{}, fmt.Errorf("program %q is unknown: want one of %s", name, strings.Join(names, ", "))
}

// steps of a thread: read, change, write.
const steps = 3

// Config of a run.
type Config struct {
	Program string
	// Schedule is the order to show, one digit for each step, that of its thread. Empty shows
	// the first one that goes wrong, or else the first.
	Schedule string
	// Atomic makes the three steps of a thread one, as a lock does.
	Atomic bool
}

// Final counts the schedules that end with a value.
type Final struct {
	Value     int    `json:"value"`
	Schedules int    `json:"schedules"`
	Example   string `json:"example"`
	Right     bool   `json:"right"`
}

// Result is the result of running a program in every order.
type Result struct {
	Program   string       `json:"algorithm"`
	N         int          `json:"n"`
	Messages  sim.Messages `json:"messages"` // always none: the memory is shared
	Time      *float64     `json:"time"`     // steps of the schedule shown
	Leader    *sim.ID      `json:"leader"`
	Safe      bool         `json:"safe"` // in every schedule
	Live      bool         `json:"live"`
	Seed      uint64       `json:"seed"`
	Schedules int          `json:"schedules"`
	Finals    []Final      `json:"finals"`
	Shown     string       `json:"shown"`

	Violations []sim.Violation `json:"violations"`
	Records    []sim.Record    `json:"-"`
	Ring       []sim.ID        `json:"-"`
}

// memory is the state between steps.
type memory struct {
	value     int
	registers [2]int
	next      [2]int
}

func (m memory) step(p Program, thread int) (after memory, text string) {
	switch m.next[thread] {
	case 0:
		m.registers[thread] = m.value
		text = fmt.Sprintf("register = %s", p.Variable)
	case 1:
		m.registers[thread] += p.change[thread]
		text = fmt.Sprintf("register = register %+d", p.change[thread])
	default:
		m.value = m.registers[thread]
		text = fmt.Sprintf("%s = register", p.Variable)
	}
	m.next[thread]++
	return m, text
}

// Schedules returns all orders of the steps, as digits; atomic ones keep a thread's
// together.
func Schedules(atomic bool) (all []string) {
	var extend func(done string, left [2]int)
	extend = func(done string, left [2]int) {
		if left == [2]int{} {
			all = append(all, done)
			return
		}
		for thread := range left {
			if left[thread] == 0 || atomic && left[1-thread]%steps != 0 {
				continue
			}
			rest := left
			rest[thread]--
			extend(done+string(rune('1'+thread)), rest)
		}
	}
	extend("", [2]int{steps, steps})
	return all
}

func check(schedule string) error {
	if len(schedule) != 2*steps || strings.Count(schedule, "1") != steps || strings.Count(schedule, "2") != steps {
		return fmt.Errorf("schedule %q: want %d digits 1 and %d digits 2, such as 112122", schedule, steps, steps)
	}
	return nil
}

// Run goes through all schedules and shows one.
func Run(c Config) (Result, error) {
	p, err := Lookup(c.Program)
	if err != nil {
		return Result{}, err
	}
	all := Schedules(c.Atomic)
	if c.Schedule != "" {
		if err := check(c.Schedule); err != nil {
			return Result{}, err
		}
		if !slices.Contains(all, c.Schedule) {
			return Result{}, fmt.Errorf("schedule %s interrupts a thread whose steps are atomic", c.Schedule)
		}
	}
	r := Result{Program: p.Name, N: 2, Messages: sim.Messages{ByType: map[string]int{}}, Live: true,
		Schedules: len(all), Shown: c.Schedule, Ring: []sim.ID{1, 2}, Violations: []sim.Violation{}}
	finals := map[int]*Final{}
	for _, schedule := range all {
		m := memory{value: p.start}
		for _, thread := range schedule {
			m, _ = m.step(p, int(thread-'1'))
		}
		if finals[m.value] == nil {
			finals[m.value] = &Final{Value: m.value, Example: schedule, Right: m.value == p.right}
		}
		finals[m.value].Schedules++
	}
	for _, value := range slices.Sorted(maps.Keys(finals)) {
		r.Finals = append(r.Finals, *finals[value])
		if !finals[value].Right && r.Shown == "" {
			r.Shown = finals[value].Example
		}
	}
	if r.Shown == "" {
		r.Shown = all[0]
	}
	r.Safe = len(finals) == 1 && finals[p.right] != nil
	r.record(p)
	return r, nil
}

// record draws the schedule shown: one step a unit, the variable in a column of its own.
func (r *Result) record(p Program) {
	m := memory{value: p.start}
	set := func(at int, id sim.ID, name string, value int) {
		r.Records = append(r.Records, sim.Record{At: units(at), Kind: sim.Changed, Process: id, Peer: sim.None,
			Variables: []sim.Variable{{Name: name, Value: fmt.Sprint(value)}}})
	}
	note := func(at int, id sim.ID, text string) {
		r.Records = append(r.Records, sim.Record{At: units(at), Kind: sim.Told, Process: id, Peer: sim.None,
			Label: text})
	}
	note(0, sim.Service, fmt.Sprintf("is %s, %d", p.Variable, p.start))
	set(0, sim.Service, p.Variable, p.start)
	for i, digit := range r.Shown {
		thread := int(digit - '1')
		before := m.value
		after, text := m.step(p, thread)
		m = after
		note(i+1, sim.ID(thread+1), fmt.Sprintf("%s (%d)", text, m.registers[thread]))
		set(i+1, sim.ID(thread+1), "register", m.registers[thread])
		if m.next[thread] == steps {
			note(i+1, sim.Service, fmt.Sprintf("was %d, is %d", before, m.value))
			set(i+1, sim.Service, p.Variable, m.value)
		}
	}
	taken := float64(len(r.Shown))
	r.Time = &taken
	if m.value != p.right {
		r.Violations = append(r.Violations, sim.Violation{At: units(len(r.Shown)), End: true,
			Text: fmt.Sprintf("the %s is %d, and should be %d", p.Variable, m.value, p.right)})
	}
}

func units(n int) time.Duration { return time.Duration(n) * sim.Unit }
