// Package overload measures clients with a modest, fixed rate alone, and then beside a flood: clients from another
// address that offer many times what the ensemble can serve and do not back off. It is the suite overload of the
// program bench.
//
// The flood is a process of its own, "zk-lite bench" in an open loop, whose window is always full: a connection that
// ends is opened again at once. It has the lowest priority for the processors (nice 19), so that it takes no time
// from the servers, as if it were on other machines. Each round starts new servers.
//
// # Concurrency
//
// The caller's goroutine measures. While the flood lasts one goroutine waits for its process, and one for each server
// asks it again and again whether it lives.
package overload

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// Section is the part of the results that Run writes.
const Section = "overload"

// Scenario is the load, beside the options of all suites.
type Scenario struct {
	rate        float64 // of the clients that are measured
	times       float64 // what the flood offers, as a multiple of what was served in a closed loop
	connections int     // of the flood
	inFlight    int
	address     string
	auth        string
	clientAuth  string
}

// Flags lets the user set s.
func (s *Scenario) Flags(f *flag.FlagSet) {
	f.Float64Var(&s.rate, "client-rate", 1000, "overload: requests a second of the clients that are measured")
	f.Float64Var(&s.times, "flood", 10, "overload: what the flood offers, as a multiple of what the servers can serve")
	f.IntVar(&s.connections, "flood-connections", 64, "overload: connections of the flood")
	f.IntVar(&s.inFlight, "flood-in-flight", load.OpenInFlight, "overload: requests of each of them without a reply")
	f.StringVar(&s.address, "flood-address", "127.0.0.2", "overload: address from which the flood connects")
	f.StringVar(&s.auth, "flood-auth", "", "overload: identity of the flood, as digest:user:password")
	f.StringVar(&s.clientAuth, "client-auth", "", "overload: identity of the clients that are measured")
}

// The clients that are measured.
const (
	clients        = 16
	sessionTimeout = 10 * time.Second
)

// capacityInFlight bounds the window of the closed loop, of the flood's connections, that shows what the servers can
// serve: slow ones must answer all of it within seconds.
const capacityInFlight = 256

// lead is how long the flood lasts before anything is measured, beside -warm-up: it opens its connections within.
const lead = 6 * time.Second

// round is one measurement of one system. Its JSON is in the file of all results.
type round struct {
	System   string       `json:"system"`
	Capacity float64      `json:"capacity_per_second"`
	Alone    *load.Result `json:"alone"`
	Beside   *load.Result `json:"beside"`
	Flood    *load.Result `json:"flood"`
	Lives    liveness     `json:"liveness"`
}

// Run measures all systems in turn within each round, and saves the results so far after each.
func Run(ctx context.Context, site *system.Site, o *system.Options, s *Scenario) error {
	if !(s.rate > 0 && s.times > 0) {
		return errors.New("-client-rate and -flood above 0")
	}
	names := o.Names(system.Apache, system.Ours)
	head := system.Head{Began: time.Now(), End: errors.New("still running"),
		How: fmt.Sprintf("%d rounds of %v alone and %v beside the flood", o.Rounds, o.Duration, o.Duration)}
	var all []*round
	save := func() error {
		text := fmt.Sprintf("## Suite %s\n%s%s\n", Section, site.Head(&head), table(names, all))
		return site.Save(Section, head.Began, text, all, head.End)
	}
	for n := range o.Rounds {
		for _, name := range names {
			it, err := site.System(name, o.Builds)
			if err != nil {
				return err
			}
			version, err := it.Version()
			if err != nil {
				return err
			}
			if line := name + ": " + version; !slices.Contains(head.Versions, line) {
				head.Versions = append(head.Versions, line)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", n+1, o.Rounds, name)
			r, err := s.round(ctx, site, it, o)
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", name, err), save())
			}
			fmt.Fprintf(os.Stderr, "  p99 %s alone, %s beside %s/s of %s/s offered\n", tail(r.Alone), tail(r.Beside),
				report.Count(r.Flood.Total.PerSecond), report.Count(r.Flood.Config.Rate))
			all = append(all, r)
			if err := save(); err != nil {
				return err
			}
		}
	}
	head.End = nil
	return save()
}

func tail(r *load.Result) string { return report.Time(r.Total.Latency.P99.Duration()) }

// round measures one system.
func (s *Scenario) round(
	ctx context.Context, site *system.Site, it system.System, o *system.Options,
) (*round, error) {
	if name := it.Name(); name == "etcd" || name == "noop" {
		return nil, fmt.Errorf("it has no sessions to lose; %s, %s and builds are possible", system.Apache, system.Ours)
	}
	ours, err := site.System(system.Ours, nil) // its load generator
	if err != nil {
		return nil, err
	}
	e, err := system.Up(ctx, it, site.Dir, system.Setup{HTTP: it.Name() != system.Apache, Sync: o.Sync, Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	defer e.Down()
	cfg := load.Default()
	cfg.Hosts, cfg.PIDs, cfg.Seed, cfg.Keep = e.Hosts, e.PIDs(), o.Seed, true
	cfg.Mix = load.Mix{{Op: load.Get, Weight: 1}, {Op: load.Set, Weight: 1}}
	cfg.WarmUp, cfg.Duration = o.JIT, o.Duration
	cfg.Connections, cfg.InFlight = s.connections, min(s.inFlight, capacityInFlight)
	most, err := e.Run(ctx, system.Load, cfg, 0)
	if err != nil {
		return nil, fmt.Errorf("measuring what it can serve: %w", err)
	}
	r := &round{System: it.Name(), Capacity: most.Total.PerSecond}
	cfg.Connections, cfg.InFlight, cfg.Rate, cfg.WarmUp = clients, load.OpenInFlight, s.rate, o.WarmUp
	cfg.Return, cfg.SessionTimeout, cfg.Auth = true, sessionTimeout, s.clientAuth
	if r.Alone, err = e.Run(ctx, system.Load, cfg, 0); err != nil {
		return nil, fmt.Errorf("alone: %w", err)
	}
	z, _ := ours.(*system.ZKLite)
	return r, s.beside(ctx, e, z.Binary(), cfg, r)
}

// beside measures the clients while the flood lasts.
func (s *Scenario) beside(ctx context.Context, e *system.Ensemble, binary string, cfg load.Config, r *round) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var f *flood
	var floodErr error
	cfg.WarmUp += lead
	cfg.Interval = 100 * time.Millisecond
	cfg.Progress = func(load.Sample) { // the clients have connected, and send
		if f == nil && floodErr == nil {
			f, floodErr = s.start(ctx, binary, e.Hosts, r.Capacity*s.times, cfg.WarmUp+cfg.Duration+time.Second)
		}
	}
	watched := watchLives(ctx, e)
	var err error
	r.Beside, err = e.Run(ctx, system.Load, cfg, 0)
	r.Lives = watched()
	if f == nil {
		return errors.Join(err, floodErr, errors.New("there was no flood"))
	}
	var endErr error
	r.Flood, endErr = f.end()
	if err = errors.Join(err, endErr); err != nil {
		return fmt.Errorf("beside the flood: %w", err)
	}
	if r.Flood.Started.After(r.Beside.Started) {
		return fmt.Errorf("the flood began %v too late: the machine is busy", r.Flood.Started.Sub(r.Beside.Started))
	}
	return nil
}
