package growth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// both are the operations of most curves: one that any server answers, and one that
// needs a majority of them.
func both() []load.Op { return []load.Op{load.Get, load.Set} }

// sweep measures both operations at every point, on one ensemble.
func (g *growth) sweep(
	ctx context.Context, c *curve, xs []int, config func(*load.Config, int),
) error {
	e, err := g.up(ctx, system.Setup{})
	if err != nil {
		return err
	}
	defer e.Down()
	for _, x := range xs {
		for _, op := range both() {
			cfg := g.config(e, op, 16, 1)
			config(&cfg, x)
			if err := g.point(ctx, e, c, float64(x), cfg); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *growth) connections(ctx context.Context) error {
	c := &curve{ID: "connections", X: "connections", Title: "connections, one request in flight each"}
	return g.sweep(ctx, c, []int{1, 4, 16, 64, 256, 1024, 4096, 10_000},
		func(cfg *load.Config, x int) { cfg.Connections = x })
}

func (g *growth) inFlight(ctx context.Context) error {
	c := &curve{ID: "in-flight", X: "in flight", Title: "requests in flight on each of 16 connections"}
	return g.sweep(ctx, c, []int{1, 4, 16, 64, 256, 1024},
		func(cfg *load.Config, x int) { cfg.InFlight = x })
}

// largeValue is the size from which on there are fewer keys, so that tree and values still fit
// into memory.
const largeValue = 100_000

func (g *growth) valueSize(ctx context.Context) error {
	c := &curve{ID: "value", X: "bytes", Title: "the size of a value, 16 connections"}
	return g.sweep(ctx, c, []int{10, 100, 1000, 10_000, 100_000, 1_000_000},
		func(cfg *load.Config, x int) {
			cfg.ValueSize = x
			if x >= largeValue {
				cfg.Keys = 16
			}
		})
}

func (g *growth) ensemble(ctx context.Context) error {
	c := &curve{ID: "ensemble", X: "servers", Title: "servers of the ensemble, 64 connections"}
	for _, n := range []int{1, 3, 5, 7} {
		e, err := g.up(ctx, system.Setup{Servers: n})
		if err != nil {
			return fmt.Errorf("%d servers: %w", n, err)
		}
		for _, op := range both() {
			if err == nil {
				err = g.point(ctx, e, c, float64(n), g.config(e, op, 64, 1))
			}
		}
		e.Down()
		if err != nil {
			return err
		}
	}
	return nil
}

// reads measures throughput against the share of reads, a line per ensemble: the figure with
// which ZooKeeper's authors show the strength of their service.
func (g *growth) reads(ctx context.Context) error {
	c := &curve{ID: "reads", X: "reads, %", Title: "the share of reads, 64 connections x 16 in flight", Share: true}
	for _, n := range []int{3, 5, 7} {
		if err := g.shares(ctx, c, n); err != nil {
			return fmt.Errorf("%d servers: %w", n, err)
		}
	}
	return nil
}

func (g *growth) shares(ctx context.Context, c *curve, servers int) error {
	e, err := g.up(ctx, system.Setup{Servers: servers})
	if err != nil {
		return err
	}
	defer e.Down()
	for _, share := range []int{0, 20, 40, 60, 80, 90, 95, 100} {
		cfg := g.config(e, load.Get, 64, 16)
		cfg.Mix = slices.DeleteFunc(load.Mix{{Op: load.Get, Weight: share}, {Op: load.Set, Weight: 100 - share}},
			func(s load.Share) bool { return s.Weight == 0 })
		if err := g.point(ctx, e, c, float64(share), cfg); err != nil {
			return err
		}
	}
	return nil
}

// watchSessions is how many sessions share the watches.
const watchSessions = 30

// watches grows the number of watches that wait, each on a path of its own, beside a load that
// does not fire them.
func (g *growth) watches(ctx context.Context) error {
	c := &curve{ID: "watches", X: "watches", Title: "watches that wait, 64 connections that do not have them"}
	for _, x := range tens(1, g.o.Znodes) {
		if err := g.watched(ctx, c, x); err != nil {
			return err
		}
	}
	return nil
}

// watched measures on an ensemble of its own, so that its memory is that of x watches.
func (g *growth) watched(ctx context.Context, c *curve, x int) (err error) {
	if x == 10 || x == 1000 {
		return nil // every second power is enough below 10,000
	}
	e, err := g.up(ctx, system.Setup{})
	if err != nil {
		return err
	}
	defer e.Down()
	cfg := g.config(e, load.Get, watchSessions, 1)
	cfg.Prefix = "/watched"
	armed, err := load.Arm(ctx, cfg, x)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, armed.Close()) }()
	for _, op := range both() {
		if err := g.point(ctx, e, c, float64(x), g.config(e, op, 64, 1)); err != nil {
			return err
		}
	}
	return nil
}

// watchersLeast is enough for some rounds of the most watchers.
const watchersLeast = 2 * time.Second

// watchers grows the number of clients that watch one znode.
func (g *growth) watchers(ctx context.Context) error {
	c := &curve{ID: "watchers", X: "watchers", Times: true,
		Title: "watchers of one znode: event of the median one, and of the last"}
	e, err := g.up(ctx, system.Setup{})
	if err != nil {
		return err
	}
	defer e.Down()
	for _, x := range []int{1, 10, 100, 1000, 10_000} {
		cfg := g.config(e, load.Get, x, 1)
		cfg.Duration = max(cfg.Duration, watchersLeast)
		r, err := e.Run(ctx, system.Watch, cfg, 0)
		if err != nil {
			return fmt.Errorf("%d watchers: %w", x, err)
		}
		for i := range r.Ops {
			g.add(c, r.Ops[i].Name, figureOf(float64(x), r, &r.Ops[i]))
		}
	}
	return nil
}

// fanOut measures others' writes while one znode changes again and again, as soon as all its watchers, who need a
// processor themselves, have set their one-shot watches again.
func (g *growth) fanOut(ctx context.Context) error {
	c := &curve{ID: "fan-out", X: "watchers",
		Title: "sets of 8 connections while the watchers of one znode have event on event"}
	e, err := g.up(ctx, system.Setup{})
	if err != nil {
		return err
	}
	defer e.Down()
	for _, x := range []int{1, 100, 1000, 10_000} {
		if err := g.besideFanOut(ctx, e, c, x); err != nil {
			return fmt.Errorf("%d watchers: %w", x, err)
		}
	}
	return nil
}

// besideFanOut measures a point of fanOut, from when all watchers are there.
func (g *growth) besideFanOut(ctx context.Context, e *system.Ensemble, c *curve, x int) error {
	beside, stop := context.WithCancel(ctx)
	began, ended := make(chan struct{}), make(chan error, 1)
	cfg := g.config(e, load.Get, x, 1)
	cfg.Prefix, cfg.Duration, cfg.WarmUp = "/fan-out", watchersMost, 0
	cfg.Measured = func(begun bool) {
		if begun {
			close(began)
		}
	}
	go func() {
		_, err := load.Watch(beside, cfg)
		ended <- err
	}()
	select {
	case <-began:
	case err := <-ended:
		stop()
		return err
	}
	defer func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			g.troubles = append(g.troubles, fmt.Sprintf("%d watchers: %v", x, err))
		}
	}()
	return g.point(ctx, e, c, float64(x), g.config(e, load.Set, 8, 1))
}

// watchersMost is longer than a point takes with all its tries.
const watchersMost = time.Hour
