package growth

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// observerWatchers is how many clients watch one znode, spread over all members.
const observerWatchers = 1000

// observers adds observers to three voters. Clients are spread over all members, reads and watches with them.
func (g *growth) observers(ctx context.Context) error {
	c := &curve{ID: "observers", X: "members", Title: "three voters, the rest observers; 64 connections x 16 in flight"}
	events := &curve{ID: "observers-watches", X: "members", Times: true,
		Title: fmt.Sprintf("%d watchers over three voters, the rest observers", observerWatchers)}
	for n := range 7 {
		if err := g.observed(ctx, c, events, n); err != nil {
			return fmt.Errorf("%d observers: %w", n, err)
		}
	}
	return nil
}

func (g *growth) observed(ctx context.Context, c, events *curve, n int) error {
	members := system.DefaultServers + n
	e, err := g.up(ctx, system.Setup{Servers: members, Observers: n})
	if err != nil {
		return err
	}
	defer e.Down()
	for _, op := range both() {
		if err := g.point(ctx, e, c, float64(members), g.config(e, op, 64, 16)); err != nil {
			return err
		}
	}
	cfg := g.config(e, load.Get, observerWatchers, 1)
	cfg.Duration = max(cfg.Duration, watchersLeast)
	r, err := e.Run(ctx, system.Watch, cfg, 0)
	if err != nil {
		return fmt.Errorf("watchers: %w", err)
	}
	for i := range r.Ops {
		g.add(events, r.Ops[i].Name, figureOf(float64(members), r, &r.Ops[i]))
	}
	return nil
}

const (
	// steadyPoints is how many figures a steady load has.
	steadyPoints = 60
	// steadyLeast is the shortest time of each.
	steadyLeast = 100 * time.Millisecond
)

// steady measures a mixed load at half of what the servers can do, for -duration, and shows whether memory and
// latency stay as they are.
func (g *growth) steady(ctx context.Context) error {
	e, err := g.up(ctx, system.Setup{})
	if err != nil {
		return err
	}
	defer e.Down()
	cfg := g.config(e, load.Get, 64, 16)
	cfg.Mix = load.Mix{{Op: load.Get, Weight: 9}, {Op: load.Set, Weight: 1}}
	cfg.Duration = min(cfg.Duration, 10*time.Second)
	most, err := e.Run(ctx, system.Load, cfg, 0)
	if err != nil {
		return fmt.Errorf("what the servers can do: %w", err)
	}
	cfg.Rate, cfg.InFlight, cfg.Duration = most.Total.PerSecond/2, load.OpenInFlight, g.o.Duration
	cfg.Interval = max(cfg.Duration/steadyPoints, steadyLeast)
	c := &curve{ID: "steady", X: "seconds", Times: true,
		Title: fmt.Sprintf("90 %% get, 10 %% set at half load, %.0f a second, over time", cfg.Rate)}
	pids := append([]int{os.Getpid()}, cfg.PIDs...)
	before := make([]time.Duration, len(pids)) // CPU of each until the last sample
	var last time.Duration
	cfg.Progress = func(s load.Sample) {
		f := figure{X: s.At.Round(steadyLeast).Seconds(), PerSecond: s.PerSecond, P50: s.P50.Duration(),
			P99: s.P99.Duration(), P999: s.P999.Duration(), Syncs: -1}
		for i, pid := range pids {
			p, err := load.ReadProcess(pid)
			if err != nil {
				continue // its end shows in the load
			}
			cores := (p.CPU - before[i]).Seconds() / max(s.At-last, steadyLeast).Seconds()
			if before[i] = p.CPU; i == 0 {
				f.Generator = cores
			} else {
				f.Servers, f.Memory = f.Servers+cores, max(f.Memory, p.RSS)
			}
		}
		if last = s.At; !s.WarmUp {
			g.add(c, "all", f)
		}
	}
	r, err := e.Run(ctx, system.Load, cfg, 0)
	if err != nil {
		return fmt.Errorf("at half load: %w", err)
	}
	g.add(c, "the whole time", figureOf(r.Elapsed.Seconds(), r, &r.Total))
	return nil
}
