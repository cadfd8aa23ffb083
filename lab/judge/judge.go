package judge

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// MaxProcesses bounds how many copies of a program run.
const MaxProcesses = 12

// Config of a judgement.
type Config struct {
	Command []string
	Task    string
	N       int // at most, of the runs made from seeds
	Runs    int
	Seed    uint64 // of the first run
	// Faults that the program must survive.
	Crashes           int
	Recoveries        bool
	Loss, Duplication float64
	Reorder           bool
	// AnyLeader permits an election to choose any process.
	AnyLeader bool
	// Like names an algorithm of the lab that must not send fewer messages, in the runs
	// without faults.
	Like string
	// Only is the one run to make, if it is given.
	Only *Case
	// Log gets the program's standard error.
	Log io.Writer
}

// Failure describes what went wrong.
type Failure struct {
	Kind string `json:"kind"` // protocol, safety, liveness or count
	Text string `json:"text"`
	Seed uint64 `json:"seed"`
	// Run is the run, made as small as possible, as options; First is that of the seed.
	Run   string `json:"run"`
	First string `json:"first"`
}

// Result is the judgement.
type Result struct {
	Task         string   `json:"task"`
	Runs         int      `json:"runs"` // until the failure
	Shrinks      int      `json:"shrinks"`
	Passed       bool     `json:"passed"`
	MostMessages int      `json:"most_messages"` // of a run without faults
	Compared     int      `json:"compared"`      // runs whose messages were compared
	Failure      *Failure `json:"failure"`

	Ring      []sim.ID     `json:"-"` // of the run drawn
	Records   []sim.Record `json:"-"`
	Truncated bool         `json:"-"`
}

// verdict is the result of one run.
type verdict struct {
	kind, text string
	messages   int
	compared   bool
	ring       []sim.ID
	records    []sim.Record
	truncated  bool
}

// judge keeps the program's copies.
type judge struct {
	config Config
	copies []*program
}

// Judge runs the program and stops at the first failure, which it makes as small as it can.
func Judge(ctx context.Context, c Config) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Log != nil {
		c.Log = &shared{to: c.Log}
	}
	j := &judge{config: c}
	defer j.stop()
	r := Result{Task: c.Task, Passed: true}
	for run := range c.Runs {
		seed := c.Seed + uint64(run)
		this := Case{}
		if c.Only != nil {
			this, seed = *c.Only, c.Only.seed()
		} else {
			this = c.generate(seed)
		}
		v, err := j.run(ctx, this)
		if err != nil {
			return r, err
		}
		r.Runs++
		if v.compared {
			r.Compared++
		}
		if len(*this.faults()) == 0 && quiet(*this.network()) {
			r.MostMessages = max(r.MostMessages, v.messages)
		}
		if v.kind == "" {
			r.Ring, r.Records, r.Truncated = v.ring, v.records, v.truncated
			continue
		}
		small, sv, shrinks, err := j.shrink(ctx, this, v)
		if err != nil {
			return r, err
		}
		r.Passed, r.Shrinks = false, shrinks
		r.Failure = &Failure{Kind: sv.kind, Text: sv.text, Seed: seed, Run: small.String(), First: this.String()}
		r.Ring, r.Records, r.Truncated = sv.ring, sv.records, sv.truncated
		return r, nil
	}
	return r, nil
}

func (c *Config) check() error {
	if c.Only != nil {
		c.Runs = 1
	}
	switch {
	case len(c.Command) == 0:
		return fmt.Errorf("no program: want it behind --, such as -- python3 bully.py")
	case c.Task != Election && c.Task != Mutex:
		return fmt.Errorf("task %q: want %s or %s", c.Task, Election, Mutex)
	case c.Only == nil && (c.N < 2 || c.N > MaxProcesses):
		return fmt.Errorf("%d processes: want 2 to %d", c.N, MaxProcesses)
	case c.Only != nil && len(*c.Only.ids()) > MaxProcesses:
		return fmt.Errorf("%d processes: want at most %d", len(*c.Only.ids()), MaxProcesses)
	case c.Runs < 1 || c.Crashes < 0:
		return fmt.Errorf("%d runs, %d crashes: want 1 or more, and 0 or more", c.Runs, c.Crashes)
	case c.Like == "":
		return nil
	case c.Task == Election:
		_, err := election.Lookup(c.Like)
		return err
	}
	_, err := mutex.Lookup(c.Like)
	return err
}

func quiet(n sim.Network) bool {
	return n.Loss == 0 && n.Duplication == 0 && len(n.Drop) == 0 && len(n.Duplicate) == 0 && n.Delay.Min == n.Delay.Max
}

// stop ends the copies.
func (j *judge) stop() {
	for _, p := range j.copies {
		p.stop()
	}
	j.copies = nil
}

// ready has a copy for each process forget everything.
func (j *judge) ready(ctx context.Context, c Case) error {
	if slices.ContainsFunc(j.copies, func(p *program) bool { return p.err != nil }) {
		j.stop()
	}
	ring := *c.ids()
	for len(j.copies) < len(ring) {
		p, err := start(ctx, j.config.Command, j.config.Log)
		if err != nil {
			return err
		}
		j.copies = append(j.copies, p)
	}
	bound := sim.Units(c.network().Delay.Max)
	if bound == 0 {
		bound = 1
	}
	for i, id := range ring {
		j.copies[i].asked = 0
		// Its answer to this is ignored; a missing answer is noticed in the run.
		_, _ = j.copies[i].ask(event{Event: "init", Task: j.config.Task, Self: &id,
			IDs: slices.Sorted(slices.Values(ring)), Ring: ring, DelayMax: bound})
	}
	return nil
}

// run makes one run and judges it.
func (j *judge) run(ctx context.Context, c Case) (verdict, error) {
	if err := ctx.Err(); err != nil {
		return verdict{}, fmt.Errorf("judging: %w", err)
	}
	if err := j.ready(ctx, c); err != nil {
		return verdict{}, err
	}
	c = c.clone()
	ring := *c.ids()
	sorted := slices.Sorted(slices.Values(ring))
	build := func(id sim.ID) sim.Node {
		n := node{program: j.copies[slices.Index(ring, id)], ids: sorted, self: id, leader: sim.None}
		if c.Mutex != nil {
			n.hold = max(c.Mutex.Hold, sim.Unit)
		}
		return n
	}
	v, err := j.simulate(c, build)
	if err != nil {
		return v, err
	}
	for i, id := range ring {
		if err := j.copies[i].err; err != nil {
			v.kind, v.text = "protocol", fmt.Sprintf("%v, %v", id, err)
			break
		}
	}
	return v, nil
}

func (j *judge) simulate(c Case, build func(sim.ID) sim.Node) (verdict, error) {
	if c.Election != nil {
		e := *c.Election
		e.Program, e.Keep = build, true
		r, err := election.Run(e)
		v := verdict{messages: r.Messages.Total, ring: r.Ring, records: r.Records, truncated: r.Truncated}
		notLive := "at the end a process that is up holds no leader, or the run does not end"
		if r.Declared == 0 {
			notLive += `: no process has answered {"leader": ITS-ID} yet`
		}
		v.judge(r.Safe, r.Live, r.Violations, notLive)
		if err == nil && v.kind == "" && j.config.Like != "" && len(e.Faults) == 0 && quiet(e.Network) {
			e.Program, e.Algorithm, e.Keep = nil, j.config.Like, false
			other, err := election.Run(e)
			if err != nil {
				return v, err
			}
			v.compare(j.config.Like, other.Messages.Total)
		}
		return v, err
	}
	m := *c.Mutex
	m.Program, m.Keep = build, true
	r, err := mutex.Run(m)
	v := verdict{messages: r.Messages.Total, ring: r.Ring, records: r.Records, truncated: r.Truncated}
	notLive := fmt.Sprintf("%d of %d requests were served", r.Entries, r.Requests)
	if r.Entries == 0 {
		notLive += `: no process has answered {"enter": true} yet`
	}
	v.judge(r.Safe, r.Live, r.Violations, notLive)
	if err == nil && v.kind == "" && j.config.Like != "" && len(m.Faults) == 0 && quiet(m.Network) {
		m.Program, m.Algorithm, m.Keep = nil, j.config.Like, false
		other, err := mutex.Run(m)
		if err != nil {
			return v, err
		}
		v.compare(j.config.Like, other.Messages.Total)
	}
	return v, err
}

func (v *verdict) judge(safe, live bool, violations []sim.Violation, notLive string) {
	switch {
	case !safe:
		v.kind, v.text = "safety", violations[0].String()
	case !live:
		v.kind, v.text = "liveness", notLive
	}
}

func (v *verdict) compare(algorithm string, messages int) {
	if v.compared = true; v.messages > messages {
		v.kind, v.text = "count", fmt.Sprintf("%d messages, where %s has %d", v.messages, algorithm, messages)
	}
}
