package growth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/system"
)

// watchSessions is how many sessions share the watches.
const watchSessions = 30

// watches grows the number of watches that wait, each on a path of its own, beside a
// load that they are not about.
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
	e, err := g.up(ctx, system.Options{})
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

// watchers grows the number of those who watch one znode.
func (g *growth) watchers(ctx context.Context) error {
	c := &curve{ID: "watchers", X: "watchers", Times: true,
		Title: "watchers of one znode: event of the median one, and of the last"}
	e, err := g.up(ctx, system.Options{})
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
