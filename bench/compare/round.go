package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/httpload"
	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
)

// measure runs all rounds, and saves the results so far after every system. It returns the
// error of ctx or of saving: a system that fails costs its own rows only.
func (c *comparison) measure(ctx context.Context) error {
	for round := range c.o.Rounds {
		order := slices.Clone(c.systems)
		for range round % len(order) {
			order = append(order[1:], order[0])
		}
		for _, s := range order {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, c.o.Rounds, s.Name())
			err := c.loads(ctx, s, round+1)
			if err = errors.Join(err, c.save()); err != nil {
				return err
			}
		}
		c.rounds++
	}
	for _, s := range c.systems {
		for _, r := range c.wanted(s, true) {
			fmt.Fprintf(os.Stderr, "%s: %d znodes\n", s.Name(), c.o.Znodes)
			err := c.try(ctx, s, r, 0, func() (*measurement, error) { return c.fill(ctx, s, r) })
			if err = errors.Join(err, c.save()); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted are the rows of a system that want a fresh tree (memory) or do not.
func (c *comparison) wanted(s system.System, fill bool) (picked []*row) {
	for i := range c.rows {
		r := &c.rows[i]
		name := s.Name()
		if !slices.Contains(system.Known(), name) {
			name = system.Ours // a build of it
		}
		if slices.Contains(r.systems, name) && (r.kind == system.Memory) == fill {
			picked = append(picked, r)
		}
	}
	return picked
}

// tries is how often a row is tried before it is given up for a round.
const tries = 3

// try measures a row until it succeeds, and adds it. A run in which a connection ended, though
// no server was killed, has failed: ZooKeeper 3.8 occasionally leaves a request unanswered
// until the next one arrives on the same connection, and the rest of that row measures fewer
// connections. The error is the end of ctx.
func (c *comparison) try(
	ctx context.Context, s system.System, r *row, round int, once func() (*measurement, error),
) error {
	for k := 1; ; k++ {
		m, err := once()
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
		if err == nil && r.kind != system.Failover && m.result.Dropped > 0 {
			err = fmt.Errorf("%d of %d connections ended early", m.result.Dropped, r.conns)
		}
		if err == nil {
			m.round = round
			c.results.add(r, s.Name(), m)
			progress(r, m)
			return nil
		}
		first, _, _ := strings.Cut(err.Error(), "\n")
		c.troubles = append(c.troubles, trouble{r.id, s.Name(), round, k == tries, first})
		fmt.Fprintf(os.Stderr, "  %s, try %d of %d: %v\n", r.id, k, tries, err)
		if k == tries {
			return nil
		}
	}
}

// loads runs all rows but memory on a fresh ensemble, and on another one after
// something went wrong.
func (c *comparison) loads(ctx context.Context, s system.System, round int) error {
	var e *system.Ensemble
	defer func() {
		if e != nil {
			e.Down()
		}
	}()
	unable := 0 // starts that failed in turn
	for _, r := range inTurn(c.wanted(s, false), round) {
		if unable >= tries {
			return nil // noted, and not worth a minute for each further row
		}
		err := c.try(ctx, s, r, round, func() (m *measurement, err error) {
			if e == nil {
				if e, err = c.hot(ctx, s); err != nil {
					unable++
					return nil, err
				}
				unable = 0
			}
			if m, err = c.one(ctx, e, r); err != nil {
				e.Down()
				e = nil
			}
			return m, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hot starts an ensemble and warms up just-in-time compilers and caches, in the same way for
// every system.
func (c *comparison) hot(ctx context.Context, s system.System) (*system.Ensemble, error) {
	e, err := system.Up(ctx, s, c.site.Dir, system.Setup{HTTP: c.suite == HTTP, Sync: c.o.Sync, Seed: c.o.Seed})
	if err != nil || c.o.JIT == 0 {
		return e, err
	}
	r := row{mix: "get=50,set=50", conns: 32, inFlight: 16}
	switch c.suite {
	case HTTP:
		r.http, r.inFlight = httpload.Run, 1
	case Clients:
		r.client, r.conns, r.inFlight = blocking, 1, 64
	}
	cfg, err := c.config(&r, e)
	if err == nil {
		cfg.Duration, cfg.WarmUp = c.o.JIT, 0
		_, _, err = c.run(ctx, e, &r, cfg)
	}
	if err != nil {
		e.Down()
		return nil, fmt.Errorf("JIT warm-up: %w", err)
	}
	return e, nil
}

// inTurn begins with another row in each round, where the order makes no difference:
// Go clients are compared with one another on the same servers.
func inTurn(all []*row, round int) []*row {
	if len(all) == 0 || all[0].client == "" {
		return all
	}
	n := round % len(all)
	return append(all[n:], all[:n]...)
}

// run puts a row's load on the servers. The second result is how much a client's process has
// allocated per answer.
func (c *comparison) run(
	ctx context.Context, e *system.Ensemble, r *row, cfg load.Config,
) (*load.Result, float64, error) {
	switch {
	case r.client != "":
		return c.client(ctx, e, r, &cfg)
	case r.http == nil:
		res, err := e.Run(ctx, r.kind, cfg, 0)
		return res, 0, err
	}
	var api httpload.API = httpload.ZKLite{}
	if e.Name() == "etcd" {
		api = httpload.Etcd{}
	}
	res, err := r.http(ctx, cfg, api)
	return res, 0, err
}

// one measures a row.
func (c *comparison) one(ctx context.Context, e *system.Ensemble, r *row) (*measurement, error) {
	cfg, err := c.config(r, e)
	if err != nil {
		return nil, err
	}
	m := &measurement{syncs: -1}
	if r.client != "" {
		m.result, m.allocs, err = c.run(ctx, e, r, cfg)
		return m, err
	}
	if r.kind != system.Load {
		m.result, err = e.Run(ctx, r.kind, cfg, cfg.Duration/3)
		return m, err
	}
	counter, err := e.CountSyncs(ctx, c.perf)
	if err != nil {
		return nil, err
	}
	cfg.Measured = counter.Measured
	m.result, _, err = c.run(ctx, e, r, cfg)
	c.filled[e] = c.filled[e] || r.isYCSB() && err == nil
	syncs, countErr := counter.Finish()
	m.syncs = syncs
	return m, errors.Join(err, countErr)
}

func progress(r *row, m *measurement) {
	l := &m.result.Total.Latency
	line := []string{"  " + r.id + ":", show(r.column, r.figure(m))}
	if r.column != memory {
		line = append(line, report.Count(m.result.Total.PerSecond)+"/s",
			"p50", report.Time(l.P50.Duration()), "p99", report.Time(l.P99.Duration()))
	}
	for code, n := range m.result.Total.Errors {
		line = append(line, strconv.FormatUint(n, 10), "x", code)
	}
	fmt.Fprintln(os.Stderr, strings.Join(line, "  "))
}

// fill fills a fresh ensemble and measures the cost.
func (c *comparison) fill(ctx context.Context, s system.System, r *row) (*measurement, error) {
	e, err := system.Up(ctx, s, c.site.Dir, system.Setup{Env: []string{system.GoTrace}})
	if err != nil {
		return nil, err
	}
	defer e.Down()
	cfg, err := c.config(r, e)
	if err != nil {
		return nil, err
	}
	m := &measurement{syncs: -1}
	if m.result, err = e.Run(ctx, r.kind, cfg, 0); err != nil {
		return nil, err
	}
	if err := c.collect(ctx, e); err != nil {
		return nil, err
	}
	for _, p := range e.Processes {
		heap, err := e.LiveHeap(ctx, p)
		if err != nil {
			return nil, err
		}
		m.heap = max(m.heap, heap)
	}
	return m, nil
}

const (
	// collectTime is how long a Go server may take to collect its garbage after the tree is
	// complete. An idle server collects two minutes after the last collection.
	collectTime = 150 * time.Second
	// collectSettle is how long a collection that the load has begun may still last.
	collectSettle = 5 * time.Second
)

// collect waits until every Go server, with nothing to do, has collected its garbage: memory
// that is allocated during a collection counts as live. ZooKeeper's servers collect theirs when
// their heap is read (LiveHeap).
func (c *comparison) collect(ctx context.Context, e *system.Ensemble) error {
	if e.Name() == "ZooKeeper" {
		return nil
	}
	collections := func(p *process.Process) int {
		text, err := os.ReadFile(p.LogFile())
		if err != nil {
			return 0
		}
		return bytes.Count(text, []byte("\ngc "))
	}
	if err := pause(ctx, collectSettle); err != nil {
		return err
	}
	before := map[*process.Process]int{}
	for _, p := range e.Processes {
		before[p] = collections(p)
	}
	for end := time.Now().Add(collectTime); ; {
		left := slices.IndexFunc(e.Processes, func(p *process.Process) bool { return collections(p) == before[p] })
		if left < 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("server %d has not collected its garbage within %v", left+1, collectTime)
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// pause waits for d.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
