package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/bench/system"
)

// fill fills a fresh ensemble and looks at what it costs.
func (c *comparison) fill(ctx context.Context, s system.System, r *row) (*measurement, error) {
	e, err := system.Up(ctx, s, c.site.Dir, system.Options{Env: []string{system.GoTrace}})
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
	// collectTime is how long a Go server may take to collect its garbage after the
	// tree is complete. An idle one does so two minutes after the last time.
	collectTime = 150 * time.Second
	// collectSettle is how long a collection may still last that the load has begun.
	collectSettle = 5 * time.Second
)

// collect waits until every Go server, with nothing to do, has collected its
// garbage: what is allocated during a collection counts as live. ZooKeeper's
// servers are told to when their heap is read (LiveHeap).
func (c *comparison) collect(ctx context.Context, e *system.Ensemble) error {
	if e.Name() == "ZooKeeper" {
		return nil
	}
	collections := func(p *system.Process) int {
		text, err := os.ReadFile(p.Log())
		if err != nil {
			return 0
		}
		return bytes.Count(text, []byte("\ngc "))
	}
	if err := wait(ctx, collectSettle); err != nil {
		return err
	}
	before := map[*system.Process]int{}
	for _, p := range e.Processes {
		before[p] = collections(p)
	}
	for end := time.Now().Add(collectTime); ; {
		left := slices.IndexFunc(e.Processes, func(p *system.Process) bool { return collections(p) == before[p] })
		if left < 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("server %d has not collected its garbage within %v", left+1, collectTime)
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
