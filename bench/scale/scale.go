// Package scale says how far one ensemble goes on machines that are not here. It is the suite scale of the program
// bench.
//
// Five loads of three servers on this machine give what an entry of the log and a request cost in CPU time, and how
// long an entry waits (costs). A simulation of an ensemble with these costs foretells other loads, which are measured,
// too: that is the check. Arithmetic with the same costs, and with the sizes of package sizing, then says what limits
// an ensemble on larger machines, each server on its own (limits).
//
// It measures no memory, and knows nothing of caches, NUMA and queues in a network: its figures for 32 cores are
// bounds, not promises.
//
// # Concurrency
//
// The caller's goroutine does everything.
package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// Section is the part of the results that Run writes.
const Section = "scale"

// measured is what a load came to, and used.
type measured struct {
	workload
	outcome
	Servers   time.Duration `json:"servers_ns"`   // CPU time of all for an answer
	Generator time.Duration `json:"generator_ns"` // likewise
	Leader    float64       `json:"leader_share"` // of Servers: that of the busiest
	Foretold  *outcome      `json:"foretold,omitempty"`
}

// calibration are the loads that give the costs, in the order in which calibrate takes them.
var calibration = []workload{{1, 1, 1}, {256, 1, 1}, {32, 32, 1}, {64, 1, 0}, {32, 32, 0}}

// check are loads that are foretold.
var check = []workload{{16, 1, 1}, {64, 1, 1}, {8, 32, 1}, {64, 1, 0.1}, {256, 1, 0.5}, {32, 32, 0.1}}

// Run measures, foretells, and saves the results.
func Run(ctx context.Context, site *system.Site, o *system.Options) error {
	it, err := site.System(system.Ours, o.Builds)
	if err != nil {
		return err
	}
	version, err := it.Version()
	if err != nil {
		return err
	}
	began := time.Now()
	e, err := system.Up(ctx, it, site.Dir, system.Setup{Sync: o.Sync, Seed: o.Seed})
	if err != nil {
		return err
	}
	defer e.Down()
	perf := system.PerfWorks(ctx) == nil
	measure := func(all []workload) (results []*measured, err error) {
		for _, w := range all {
			m, err := one(ctx, e, o, w, perf)
			if err != nil {
				return nil, fmt.Errorf("%d connections x %d in flight: %w", w.Connections, w.InFlight, err)
			}
			fmt.Fprintf(os.Stderr, "  %s: %s/s, p50 %s\n", w.title(), report.Count(m.PerSecond), report.Time(m.P50))
			results = append(results, m)
		}
		return results, nil
	}
	given, err := measure(calibration)
	if err != nil {
		return err
	}
	checked, err := measure(check)
	if err != nil {
		return err
	}
	c := calibrate(given)
	if c.Entry <= 0 || c.Step <= 0 || c.Single.Write <= 0 || c.Piped.Write <= 0 {
		return fmt.Errorf("the measured loads give impossible costs, %+v: the machine is busy, begin again", c)
	}
	for _, m := range append(given, checked...) {
		foretold := c.simulate(m.workload, cores(), time.Second)
		m.Foretold = &foretold
	}
	head := system.Head{Began: began, How: fmt.Sprintf("%v a load after %v of warm-up", o.Duration, o.WarmUp),
		Versions: []string{system.Ours + ": " + version}}
	text := fmt.Sprintf("## Suite %s\n%s%s", Section, site.Head(&head), text(&c, given, checked))
	return site.Save(Section, began, text, map[string]any{"costs": c, "loads": append(given, checked...)}, nil)
}

func one(ctx context.Context, e *system.Ensemble, o *system.Options, w workload, perf bool) (*measured, error) {
	cfg := load.Default()
	cfg.Hosts, cfg.PIDs, cfg.Seed = e.Hosts, e.PIDs(), o.Seed
	cfg.Connections, cfg.InFlight = w.Connections, w.InFlight
	cfg.Duration, cfg.WarmUp = o.Duration, o.WarmUp
	writes := int(w.Writes * 100)
	cfg.Mix = load.Mix{{Op: load.Get, Weight: 100 - writes}, {Op: load.Set, Weight: writes}}
	counter, err := e.CountSyncs(ctx, perf)
	if err != nil {
		return nil, err
	}
	cfg.Measured = counter.Measured
	r, err := e.Run(ctx, system.Load, cfg, 0)
	syncs, countErr := counter.Finish()
	if err := errors.Join(err, countErr); err != nil {
		return nil, err
	}
	answers := r.Total.PerSecond * r.Elapsed.Seconds()
	if answers == 0 || len(r.Total.Errors) > 0 {
		return nil, fmt.Errorf("%.0f answers, errors %v", answers, r.Total.Errors)
	}
	m := &measured{workload: w, Generator: time.Duration(float64(r.Generator) / answers)}
	m.PerSecond, m.P50 = r.Total.PerSecond, r.Total.Latency.P50.Duration()
	if syncs > 0 {
		m.PerEntry = answers * w.Writes / (float64(syncs) / servers)
	}
	var all, most time.Duration
	for _, p := range r.Servers {
		all, most = all+p.CPU, max(most, p.CPU)
	}
	m.Servers, m.Leader = time.Duration(float64(all)/answers), float64(most)/float64(max(all, 1))
	return m, nil
}

// servers is how many are measured. Each syncs every entry once.
const servers = 3

// calibrate computes the costs from the loads of calibration: two with different numbers of commands in an entry tell
// what an entry costs and what a command.
func calibrate(m []*measured) (c costs) {
	single, many, piped, read, pipedRead := m[0], m[1], m[2], m[3], m[4]
	share := func(of *measured) float64 { return 1 / max(of.PerEntry, 1) }
	c.Entry = time.Duration(float64(single.Servers-many.Servers) / (share(single) - share(many)))
	perCommand := func(of *measured) time.Duration { return of.Servers - time.Duration(share(of)*float64(c.Entry)) }
	c.Single = kinds{perCommand(many), read.Servers, many.Generator, read.Generator}
	c.Piped = kinds{perCommand(piped), pipedRead.Servers, piped.Generator, pipedRead.Generator}
	c.Leader = single.Leader
	// Of an entry's CPU time the followers' parts overlap.
	leader := time.Duration(float64(c.Entry) * c.Leader)
	c.Step = single.P50 - leader - (c.Entry-leader)/2 - c.Single.Write - c.Single.WriteClient
	return c
}
