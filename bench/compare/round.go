package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
)

// measurement is one run of one row on one system.
type measurement struct {
	result *load.Result
	// syncs are disk syncs of all servers in the measured time; below 0: not
	// counted.
	syncs int64
	heap  int64 // live, of the largest server; only of kindMemory
}

// results are all measurements: row id, system name, one a round.
type results map[string]map[string][]*measurement

func (all results) add(r *row, system string, m *measurement) {
	if all[r.id] == nil {
		all[r.id] = map[string][]*measurement{}
	}
	all[r.id][system] = append(all[r.id][system], m)
}

// comparison is one call of the command.
type comparison struct {
	o        *options
	rows     []row
	systems  []system
	versions map[string]string // by name of the system
	perf     bool              // perf counts syncs
	results  results
}

// measure runs all rounds. What was measured before an error is kept.
func (c *comparison) measure(ctx context.Context) error {
	for round := range c.o.rounds {
		order := slices.Clone(c.systems)
		for range round % len(order) {
			order = append(order[1:], order[0])
		}
		for _, s := range order {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, c.o.rounds, s.name())
			if err := c.loads(ctx, s); err != nil {
				return fmt.Errorf("round %d: %s: %w", round+1, s.name(), err)
			}
		}
	}
	for _, s := range c.systems {
		if err := c.memory(ctx, s); err != nil {
			return fmt.Errorf("memory of %s: %w", s.name(), err)
		}
	}
	return nil
}

// wanted are the rows of a system that want a fresh tree (memory) or do not.
func (c *comparison) wanted(s system, fill bool) (picked []*row) {
	for i := range c.rows {
		r := &c.rows[i]
		if slices.Contains(r.systems, s.name()) && (r.kind == kindMemory) == fill {
			picked = append(picked, r)
		}
	}
	return picked
}

// loads runs all rows but memory on a fresh ensemble.
func (c *comparison) loads(ctx context.Context, s system) error {
	picked := c.wanted(s, false)
	if len(picked) == 0 {
		return nil
	}
	e, err := up(ctx, s, c.o.dir, nil)
	if err != nil {
		return err
	}
	defer e.down()
	if err := c.heat(ctx, e); err != nil {
		return err
	}
	for _, r := range picked {
		m, err := c.one(ctx, e, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.id, err)
		}
		c.results.add(r, s.name(), m)
		progress(r, m)
	}
	return nil
}

// heat gives just-in-time compilers and caches what they need; everybody gets
// it.
func (c *comparison) heat(ctx context.Context, e *ensemble) error {
	if c.o.heat == 0 {
		return nil
	}
	r := row{mix: "get=50,set=50", conns: 32, inFlight: 16}
	cfg, err := r.config(c.o, e)
	if err != nil {
		return err
	}
	cfg.Duration, cfg.WarmUp = c.o.heat, 0
	if _, err := e.run(ctx, &r, cfg, 0); err != nil {
		return fmt.Errorf("heating up: %w", err)
	}
	return nil
}

// one measures a row.
func (c *comparison) one(ctx context.Context, e *ensemble, r *row) (*measurement, error) {
	cfg, err := r.config(c.o, e)
	if err != nil {
		return nil, err
	}
	m := &measurement{syncs: -1}
	if r.kind != kindLoad {
		m.result, err = e.run(ctx, r, cfg, cfg.Duration/3)
		return m, err
	}
	if !c.perf {
		var at [2]int64
		cfg.Measured = func(begun bool) {
			at[index(begun)] = ownSyncs(ctx, e.hosts)
		}
		m.result, err = e.run(ctx, r, cfg, 0)
		if at[0] > 0 {
			m.syncs = at[0] - at[1]
		}
		return m, err
	}
	counter, err := countSyncs(ctx, e.pids())
	if err != nil {
		return nil, err
	}
	cfg.Measured = counter.measured
	m.result, err = e.run(ctx, r, cfg, 0)
	syncs, countErr := counter.finish()
	m.syncs = syncs
	return m, errors.Join(err, countErr)
}

// index is 1 at the begin and 0 at the end.
func index(begun bool) int {
	if begun {
		return 1
	}
	return 0
}

// collectTime is how long a Go server may take to collect its garbage after
// the tree is complete.
const collectTime = 60 * time.Second

// memory fills a fresh ensemble and looks at what it costs.
func (c *comparison) memory(ctx context.Context, s system) error {
	for _, r := range c.wanted(s, true) {
		fmt.Fprintf(os.Stderr, "%s: %d znodes\n", s.name(), c.o.znodes)
		m, err := c.fill(ctx, s, r)
		if err != nil {
			return err
		}
		c.results.add(r, s.name(), m)
		progress(r, m)
	}
	return nil
}

func (c *comparison) fill(ctx context.Context, s system, r *row) (*measurement, error) {
	e, err := up(ctx, s, c.o.dir, []string{goTrace})
	if err != nil {
		return nil, err
	}
	defer e.down()
	cfg, err := r.config(c.o, e)
	if err != nil {
		return nil, err
	}
	m := &measurement{syncs: -1}
	if m.result, err = e.run(ctx, r, cfg, 0); err != nil {
		return nil, err
	}
	if err := c.collect(ctx, e); err != nil {
		return nil, err
	}
	for _, p := range e.processes {
		heap, err := e.liveHeap(ctx, p)
		if err != nil {
			return nil, err
		}
		m.heap = max(m.heap, heap)
	}
	return m, nil
}

// collect writes a little until every Go server has collected twice since the
// tree was complete: the first collection may have begun before that.
func (c *comparison) collect(ctx context.Context, e *ensemble) error {
	traces := func() (least int) {
		least = -1
		for _, p := range e.processes {
			text, err := os.ReadFile(p.log)
			if n := strings.Count(string(text), "\ngc "); err == nil && (least < 0 || n < least) {
				least = n
			}
		}
		return least
	}
	if e.name() == "ZooKeeper" {
		return nil // liveHeap itself collects
	}
	r := row{mix: "set", conns: 32, inFlight: 32}
	cfg, err := r.config(c.o, e)
	if err != nil {
		return err
	}
	cfg.Duration, cfg.WarmUp = time.Second, 0
	before := traces()
	for end := time.Now().Add(collectTime); traces() < before+2; {
		if time.Now().After(end) {
			return fmt.Errorf("a server has not collected its garbage within %v", collectTime)
		}
		if _, err := e.run(ctx, &r, cfg, 0); err != nil {
			return err
		}
	}
	return nil
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
