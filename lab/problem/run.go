package problem

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Problem describes one.
type Problem struct {
	Name  string
	Title string
	// N is the default number of processes, Least the fewest.
	N, Least int
	// Fixed: it has N processes and no other number.
	Fixed    bool
	topology string
	use      sim.Use
	detects  bool // processes learn of crashes 2T later, and of recoveries
	build    func(c Config, place int) sim.Node
	begin    func(r *run)
	judge    func(r *run)
	// settled reports, for a problem whose processes never fall silent, that only upkeep is
	// left.
	settled func(r *run) bool
}

// Problems returns all.
func Problems() []Problem {
	return []Problem{generals(), boundedGenerals(), twoPhaseCommit(), zab(), primaryBackup(), deadlock()}
}

// Topology is how a picture lays out the processes.
func (p Problem) Topology() string { return p.topology }

// Lookup finds a problem by name.
func Lookup(name string) (Problem, error) {
	var names []string
	for _, p := range Problems() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Problem{}, fmt.Errorf("problem %q is unknown: want one of %s", name, strings.Join(names, ", "))
}

// Config describes a run. Zero values mean the defaults named.
type Config struct {
	Problem string
	IDs     []sim.ID
	// Rounds is how many messages the two generals exchange, and how many deposits each client
	// of the primary makes; default 3.
	Rounds int
	// Against votes no in two-phase commit.
	Against []sim.ID
	// Early makes the primary confirm before its backup has the deposit.
	Early bool
	// Unbroken leaves the deadlock as it is.
	Unbroken  bool
	Faults    []sim.Fault
	Network   sim.Network
	Seed      uint64
	MaxTime   time.Duration
	MaxEvents int // ends the run as well; zero means the simulator's default
	Keep      bool
	CheckPure bool
	Observers []sim.Observer
}

// MaxRounds bounds Config.Rounds.
const MaxRounds = 100

// Measure is something that a problem is about, in words.
type Measure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Result is the outcome of a run.
type Result struct {
	Problem  string       `json:"algorithm"`
	N        int          `json:"n"`
	Messages sim.Messages `json:"messages"`
	// Time in units until the last message arrived or the last fact was stated; null for a
	// run that did not end, and then CutOff is when it was ended.
	Time       *float64        `json:"time"`
	CutOff     *float64        `json:"cut_off,omitempty"`
	Leader     *sim.ID         `json:"leader"` // of the deadlock the victim; else null
	Safe       bool            `json:"safe"`
	Live       bool            `json:"live"`
	Seed       uint64          `json:"seed"`
	Measures   []Measure       `json:"measures"`
	Lost       int             `json:"lost"`
	Ended      string          `json:"ended"`
	Violations []sim.Violation `json:"violations"`
	Records    []sim.Record    `json:"-"`
	Truncated  bool            `json:"-"`
	Ring       []sim.ID        `json:"-"`
}

// run is one run in progress.
type run struct {
	config  Config
	problem Problem
	sim     *sim.Simulator
	facts   []sim.Record
	last    time.Duration
	result  Result
}

// Observe implements sim.Observer.
func (r *run) Observe(record sim.Record) {
	if record.Kind == sim.Noted {
		r.facts, r.last = append(r.facts, record), record.At
	}
}

// bound is T.
func (r *run) bound() time.Duration { return r.config.Network.Delay.Max }

func (r *run) measure(name, format string, args ...any) {
	r.result.Measures = append(r.result.Measures, Measure{name, fmt.Sprintf(format, args...)})
}

func (r *run) violate(at time.Duration, format string, args ...any) {
	r.result.Violations = append(r.result.Violations, sim.Violation{At: at, Text: fmt.Sprintf(format, args...)})
}

// atEnd is a promise broken by the state in which the run ended.
func (r *run) atEnd(format string, args ...any) {
	r.result.Violations = append(r.result.Violations,
		sim.Violation{At: r.sim.Now(), End: true, Text: fmt.Sprintf(format, args...)})
}

// stated returns which processes stated a fact, each with the moment of the first time.
func (r *run) stated(name string) map[sim.ID]time.Duration {
	all := map[sim.ID]time.Duration{}
	for _, f := range r.facts {
		if _, known := all[f.Process]; f.Fact.Name == name && !known {
			all[f.Process] = f.At
		}
	}
	return all
}

// Run runs one problem.
func Run(c Config) (Result, error) {
	p, err := Lookup(c.Problem)
	if err != nil {
		return Result{}, err
	}
	if err := complete(&c, p); err != nil {
		return Result{}, err
	}
	r := &run{config: c, problem: p, result: Result{Problem: p.Name, N: len(c.IDs), Seed: c.Seed,
		Measures: []Measure{}, Violations: []sim.Violation{}}}
	var members []sim.Member
	for i, id := range c.IDs {
		members = append(members, sim.Member{ID: id, Node: p.build(c, i)})
	}
	r.sim, err = sim.New(sim.Config{Seed: c.Seed, Network: c.Network, Faults: c.Faults, MaxTime: c.MaxTime,
		MaxEvents: c.MaxEvents, Keep: c.Keep, CheckPure: c.CheckPure}, members)
	if err != nil {
		return Result{}, err
	}
	r.sim.Watch(r)
	for _, o := range c.Observers {
		r.sim.Watch(o)
	}
	p.begin(r)
	r.news()
	r.result.Ended = "limit"
	settled := false
	empty := r.sim.Run(func() bool {
		settled = p.settled != nil && !r.sim.Pending() && !r.sim.Working() && p.settled(r)
		return settled
	})
	switch {
	case settled:
		r.result.Ended = "settled"
	case empty:
		r.result.Ended = "quiet"
	}
	r.finish()
	return r.result, nil
}

func complete(c *Config, p Problem) error {
	if len(c.IDs) < p.Least || p.Fixed && len(c.IDs) != p.N {
		want := fmt.Sprintf("%d or more", p.Least)
		if p.Fixed {
			want = fmt.Sprint(p.N)
		}
		return fmt.Errorf("%s with %d processes: want %s", p.Name, len(c.IDs), want)
	}
	if c.Network.Delay == (sim.Delay{}) {
		c.Network.Delay = sim.Delay{Min: sim.Unit, Max: sim.Unit}
	}
	if err := c.Network.CheckUse(p.Name, p.use); err != nil {
		return err
	}
	if c.Rounds == 0 {
		c.Rounds = 3
	}
	if c.Rounds < 1 || c.Rounds > MaxRounds {
		return fmt.Errorf("%d rounds: want 1 to %d", c.Rounds, MaxRounds)
	}
	for _, id := range c.Against {
		switch at := slices.Index(c.IDs, id); {
		case p.Name != nameTwoPhase:
			return fmt.Errorf("%s has no votes: that is for %s", p.Name, nameTwoPhase)
		case at < 1:
			return fmt.Errorf("vote of process %d, which is not among the participants", int(id))
		}
	}
	if c.Early && p.Name != namePrimary {
		return fmt.Errorf("%s confirms nothing: that is for %s", p.Name, namePrimary)
	}
	if c.Unbroken && p.Name != nameDeadlock {
		return fmt.Errorf("%s has no deadlock: that is for %s", p.Name, nameDeadlock)
	}
	if c.MaxTime == 0 {
		c.MaxTime = defaultTime(*c)
	}
	return nil
}

// defaultTime is long past the last fault.
func defaultTime(c Config) time.Duration {
	last := time.Duration(0)
	for _, f := range c.Faults {
		last = max(last, f.At)
	}
	for _, p := range c.Network.Partitions {
		last = max(last, p.Until)
	}
	return last + time.Duration(100+10*len(c.IDs)+10*c.Rounds)*c.Network.Delay.Max
}

// Suspect and Trust are the reports of a perfect detector.
type (
	// Suspect tells a process that ID has crashed.
	Suspect struct{ ID sim.ID }
	// Trust tells it that ID has recovered.
	Trust struct{ ID sim.ID }
)

// String labels the command on charts.
func (s Suspect) String() string { return fmt.Sprintf("suspects %v", s.ID) }

// String labels the command on charts.
func (t Trust) String() string { return fmt.Sprintf("trusts %v", t.ID) }

// Begin starts the process that begins.
type Begin struct{}

// String labels the command on charts.
func (Begin) String() string { return "begins" }

// news reports crashes two message times later, and recoveries at once.
func (r *run) news() {
	if !r.problem.detects {
		return
	}
	for _, f := range r.config.Faults {
		for _, id := range r.config.IDs {
			switch {
			case id == f.ID:
			case f.Recover:
				r.sim.Command(f.At, id, Trust{f.ID})
			default:
				r.sim.Command(f.At+2*r.bound(), id, Suspect{f.ID})
			}
		}
	}
}

func (r *run) finish() {
	r.result.Live = true // unless the judge decides otherwise
	r.problem.judge(r)
	units := sim.Units(max(r.last, r.sim.LastWork()))
	if r.result.Ended == "limit" {
		units = sim.Units(r.sim.Limit())
		r.result.CutOff = &units
	} else {
		r.result.Time = &units
	}
	r.result.Safe = len(r.result.Violations) == 0
	r.result.Messages, r.result.Lost, r.result.Ring = sim.Tally(r.sim.Counts()), r.sim.LostCount(), r.sim.Ring()
	r.result.Records, r.result.Truncated = r.sim.Records()
}
