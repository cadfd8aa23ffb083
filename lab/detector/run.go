package detector

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Config describes a run of detectors alone.
type Config struct {
	IDs       []sim.ID
	Timing    Timing
	Length    time.Duration // of the run; must be above zero
	Faults    []sim.Fault
	Network   sim.Network
	Seed      uint64
	MaxEvents int // ends the run as well; zero means the simulator's default
	Keep      bool
	// CheckPure makes the simulator check every step for purity.
	CheckPure bool
}

// Result is the outcome of a run. Safe: no process was suspected wrongly (accuracy). Live: all
// processes noticed every crash (completeness).
type Result struct {
	Algorithm string       `json:"algorithm"`
	N         int          `json:"n"`
	Messages  sim.Messages `json:"messages"`
	Time      float64      `json:"time"`
	Leader    *sim.ID      `json:"leader"`
	Safe      bool         `json:"safe"`
	Live      bool         `json:"live"`
	Seed      uint64       `json:"seed"`
	Quality   Quality      `json:"quality"`
	Records   []sim.Record `json:"-"`
	Truncated bool         `json:"-"`
	Ring      []sim.ID     `json:"-"`
}

// Run runs the detectors for Config.Length.
func Run(c Config) (Result, error) {
	if err := c.Timing.Check(); err != nil {
		return Result{}, err
	}
	if c.Length <= 0 {
		return Result{}, fmt.Errorf("length of the run %s: want more than 0", sim.FormatTime(c.Length))
	}
	if err := c.Network.CheckUse("a detector", sim.Use{Types: []string{Heartbeat{}.Type()}}); err != nil {
		return Result{}, err
	}
	peers := slices.Sorted(slices.Values(c.IDs))
	var members []sim.Member
	for _, id := range c.IDs {
		members = append(members, sim.Member{ID: id, Node: Wrap(id, peers, c.Timing, nil)})
	}
	s, err := sim.New(sim.Config{Seed: c.Seed, Network: c.Network, Faults: c.Faults,
		MaxTime: c.Length, MaxEvents: c.MaxEvents, Keep: c.Keep, CheckPure: c.CheckPure}, members)
	if err != nil {
		return Result{}, err
	}
	meter := NewMeter(c.IDs)
	s.Watch(meter)
	s.Run(nil)
	r := Result{Algorithm: "heartbeat", N: len(c.IDs), Time: sim.Units(c.Length), Seed: c.Seed,
		Quality: meter.Quality(c.Length), Ring: s.Ring(), Messages: sim.Tally(s.Counts())}
	r.Safe = r.Quality.FalseSuspicions == 0
	r.Live = r.Quality.Completeness == 1
	r.Records, r.Truncated = s.Records()
	return r, nil
}
