package growth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// Section is the part of the results that this package writes.
const Section = "growth"

// growth is one measurement.
type growth struct {
	o        *system.Options
	site     *system.Site
	it       system.System // zk-lite, unless -systems names another
	version  string
	perf     bool // perf counts syncs
	began    time.Time
	curves   []*curve
	facts    []string // results that are no curve
	troubles []string
	end      error // why not all was measured
}

// part is something to measure.
type part struct {
	id  string
	run func(*growth, context.Context) error
}

func parts() []part {
	return []part{
		{"connections", (*growth).connections}, {"in-flight", (*growth).inFlight},
		{"value", (*growth).valueSize}, {"tree", (*growth).tree}, {"children", (*growth).children},
		{"watches", (*growth).watches}, {"watchers", (*growth).watchers}, {"fan-out", (*growth).fanOut},
		{"ensemble", (*growth).ensemble}, {"reads", (*growth).reads}, {"snapshot", (*growth).snapshot},
		{"catch-up", (*growth).catchUp}, {"feed", (*growth).feed}, {"observers", (*growth).observers},
		{"sessions", (*growth).sessions}, {"steady", (*growth).steady},
	}
}

// Curves are the names of all that can be measured.
func Curves() (ids []string) {
	for _, p := range parts() {
		ids = append(ids, p.id)
	}
	return ids
}

// Run measures the requested curves, those of o.Rows, and saves the results so far after each. The largest tree,
// number of children and of watches is o.Znodes.
func Run(ctx context.Context, site *system.Site, o *system.Options) error {
	g := &growth{o: o, site: site, began: time.Now(), perf: system.PerfWorks(ctx) == nil,
		end: errors.New("still running")}
	var err error
	if g.it, err = site.System(o.Names(system.Ours)[0], o.Builds); err != nil {
		return err
	}
	if g.version, err = g.it.Version(); err != nil {
		return err
	}
	for _, p := range parts() {
		if len(o.Rows) > 0 && !slices.Contains(o.Rows, p.id) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s (%v)\n", p.id, time.Since(g.began).Round(time.Second))
		err := p.run(g, ctx)
		if ctx.Err() != nil {
			g.end = fmt.Errorf("interrupted: %w", context.Cause(ctx))
			return errors.Join(g.end, g.save())
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "  %v\n", err)
			first, _, _ := strings.Cut(err.Error(), "\n")
			g.troubles = append(g.troubles, fmt.Sprintf("%s: not complete: `%s`", p.id, first))
		}
		if err := g.save(); err != nil {
			return err
		}
	}
	g.end = nil
	return g.save()
}

// name is the system's.
func (g *growth) name() string {
	if g.it == nil {
		return system.Ours
	}
	return g.it.Name()
}

// up starts the system's servers.
func (g *growth) up(ctx context.Context, setup system.Setup) (*system.Ensemble, error) {
	setup.Sync, setup.Seed = g.o.Sync, g.o.Seed
	return system.Up(ctx, g.it, g.site.Dir, setup)
}

// config is a load of one operation.
func (g *growth) config(e *system.Ensemble, op load.Op, conns, inFlight int) load.Config {
	cfg := load.Default()
	cfg.Hosts, cfg.PIDs, cfg.Connections, cfg.InFlight = e.Hosts, e.PIDs(), conns, inFlight
	cfg.Duration, cfg.WarmUp = g.o.Duration, g.o.WarmUp
	cfg.Mix = load.Mix{{Op: op, Weight: 1}}
	return cfg
}

// tries is how often a point is tried before its curve is given up.
const tries = 3

// point measures one point of a curve.
func (g *growth) point(
	ctx context.Context, e *system.Ensemble, c *curve, x float64, cfg load.Config,
) (err error) {
	for range tries {
		if err = g.once(ctx, e, c, x, cfg); err == nil || ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "  %v\n", err)
	}
	return err
}

func (g *growth) once(
	ctx context.Context, e *system.Ensemble, c *curve, x float64, cfg load.Config,
) error {
	counter, err := e.CountSyncs(ctx, g.perf)
	if err != nil {
		return err
	}
	cfg.Measured = counter.Measured
	r, err := e.Run(ctx, system.Load, cfg, 0)
	syncs, countErr := counter.Finish()
	if err = errors.Join(err, countErr); err != nil {
		return fmt.Errorf("%s %g: %w", c.X, x, err)
	}
	ops := r.Ops
	if c.Share {
		r.Total.Name = fmt.Sprintf("%d servers", len(cfg.Hosts))
		ops = []load.OpResult{r.Total}
	}
	for i := range ops {
		f := figureOf(x, r, &ops[i])
		if syncs >= 0 {
			f.Syncs = float64(syncs) / max(r.Total.PerSecond*r.Elapsed.Seconds(), 1)
		}
		g.add(c, ops[i].Name, f)
	}
	return nil
}

// add notes a figure.
func (g *growth) add(c *curve, name string, f figure) {
	if !slices.Contains(g.curves, c) {
		g.curves = append(g.curves, c)
	}
	l := c.line(name)
	l.Figures = append(l.Figures, f)
	fmt.Fprintf(os.Stderr, "  %g: %s %s/s, p50 %s, p99 %s, %.2f + %.2f cores\n", f.X, name,
		report.Count(f.PerSecond), report.Time(f.P50), report.Time(f.P99), f.Servers, f.Generator)
}

// save writes the results so far.
func (g *growth) save() error {
	if file := g.site.Output.File(g.site.Root, g.began); file != "-" {
		if err := g.plot(filepath.Join(filepath.Dir(file), g.plotFile())); err != nil {
			return err
		}
	}
	return g.site.Save(Section, g.began, g.text(), g.curves, g.end)
}
