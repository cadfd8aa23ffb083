package mutex

import (
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// run is one run in progress.
type run struct {
	config    Config
	algorithm Algorithm
	sim       *sim.Simulator
	meter     *meter
	fairness  *fairness
	asked     map[sim.ID]int // requests given to a process so far
	lastExit  time.Duration
}

// Run runs one algorithm until all requests are served or nothing more happens.
func Run(c Config) (Result, error) {
	a, members, err := Build(&c)
	if err != nil {
		return Result{}, err
	}
	r := &run{config: c, algorithm: a, meter: newMeter(), asked: map[sim.ID]int{},
		fairness: newFairness(c.Requesters)}
	r.sim, err = sim.New(sim.Config{Seed: c.Seed, Network: c.Network, Faults: c.Faults,
		MaxTime: c.MaxTime, MaxEvents: c.MaxEvents, Keep: c.Keep, CheckPure: c.CheckPure}, members)
	if err != nil {
		return Result{}, err
	}
	r.sim.Watch(r.meter)
	r.sim.Watch(r.fairness)
	for _, o := range c.Observers {
		r.sim.Watch(o)
	}
	for i, id := range c.Requesters {
		r.ask(c.FirstRequest+time.Duration(i)*c.Spacing, id)
	}
	return r.finish(r.play()), nil
}

// lookup finds the algorithm, or the guarantees of a program.
func (c Config) lookup() (Algorithm, error) {
	if c.Program == nil {
		return Lookup(c.Algorithm)
	}
	return Algorithm{Name: "program", Title: "A program", perpetual: true,
		build: func(_ Config, _ []sim.ID, id sim.ID) sim.Node { return c.Program(id) }}, nil
}

// Build completes a configuration and returns its processes as they are before the run.
func Build(c *Config) (Algorithm, []sim.Member, error) {
	a, err := c.lookup()
	if err != nil {
		return a, nil, err
	}
	if err := complete(c, a); err != nil {
		return a, nil, err
	}
	var members []sim.Member
	if a.service != nil {
		members = append(members, sim.Member{ID: sim.Service, Node: a.service(*c)})
	}
	peers := slices.Sorted(slices.Values(c.IDs))
	for _, id := range c.IDs {
		members = append(members, sim.Member{ID: id, Node: a.build(*c, peers, id)})
	}
	return a, members, nil
}

func (r *run) ask(at time.Duration, id sim.ID) {
	r.asked[id]++
	r.sim.Command(at, id, Request{})
}

// play runs to the end and returns how the run ended. After each exit it gives the process its
// next request.
func (r *run) play() string {
	stopped := false
	empty := r.sim.Run(func() bool {
		for _, id := range r.meter.exits {
			r.lastExit = r.sim.Now()
			if r.asked[id] < r.config.Requests {
				r.ask(r.sim.Now()+r.config.Think, id)
			}
		}
		r.meter.exits = r.meter.exits[:0]
		stopped = r.algorithm.perpetual && r.served()
		return stopped
	})
	switch {
	case stopped:
		return "settled"
	case empty:
		return "quiet"
	}
	return "limit"
}

// programRest is how many message times a program that never falls silent runs on.
const programRest = 10

// served reports whether all requests are over and, where messages end, the last
// of them has arrived. A token never does.
func (r *run) served() bool {
	if r.sim.Pending() || r.missing() > 0 || len(r.meter.inside) > 0 {
		return false
	}
	patient := r.config.Program != nil && r.sim.Now()-r.lastExit > programRest*r.config.Network.Delay.Max
	return r.algorithm.Name == "token-ring" || patient || !r.sim.Working()
}

// missing counts the requests of up processes that were not served. A request
// that a crash took away is not missing: its process forgot it.
func (r *run) missing() int {
	missing := 0
	for _, id := range r.config.Requesters {
		if _, open := r.meter.asked[id]; open && !r.meter.down[id] {
			missing += 1 + r.config.Requests - r.asked[id]
		}
	}
	return missing
}

func (r *run) finish(ended string) Result {
	m := r.meter
	missing := r.missing()
	result := Result{
		Algorithm: r.algorithm.Name, N: len(r.config.IDs), Seed: r.config.Seed,
		Safe: len(m.violations) == 0, Live: missing == 0 && len(m.inside) == 0,
		Requests: m.entries + missing, Entries: m.entries,
		ClientDelay: delayOf(m.clientSum, m.clientMax, m.clients),
		ExitDelay:   delayOf(m.exitSum, m.exitMax, m.exitCount),
		SyncDelay:   delayOf(m.syncSum, m.syncMax, m.syncs),
		Fairness: Fairness{Overtakes: m.overtakes, OutOfOrder: r.fairness.outOfOrder, Twice: r.fairness.twice,
			Examples: append([]sim.Violation{}, r.fairness.examples...), WaitMax: sim.Units(m.waitMax)},
		Lost: r.sim.LostCount(), Ended: ended, Ring: r.sim.Ring(),
		Service: r.algorithm.service != nil, Violations: append([]sim.Violation{}, m.violations...),
	}
	units := sim.Units(max(r.lastExit, r.sim.LastWork()))
	if ended == "limit" {
		units = sim.Units(r.sim.Limit())
		result.CutOff = &units
	} else {
		result.Time = &units
	}
	result.Messages = sim.Tally(r.sim.Counts())
	upkeep := result.Messages.ByType["ping"] + result.Messages.ByType["pong"]
	if m.entries > 0 {
		result.MessagesPerEntry = float64(result.Messages.Total-upkeep) / float64(m.entries)
		result.Fairness.WaitMean = sim.Units(m.waitSum / time.Duration(m.entries))
	}
	result.Records, result.Truncated = r.sim.Records()
	return result
}
