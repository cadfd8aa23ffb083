package growth

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
	"github.com/zk-lite/zk-lite/client"
)

// tens are the powers of ten from one number to another.
func tens(from, upto int) (all []int) {
	for n := from; n <= upto; n *= 10 {
		all = append(all, n)
	}
	return all
}

// tree grows the number of znodes, all of which are read and written; and with the
// largest it measures restarts.
func (g *growth) tree(ctx context.Context) error {
	c := &curve{ID: "tree", X: "znodes", Title: "znodes of 100 bytes, all in use, 64 connections"}
	e, err := g.up(ctx, system.Setup{})
	if err != nil {
		return err
	}
	defer e.Down()
	for _, x := range tens(1000, g.o.Znodes) {
		for i, op := range both() {
			cfg := g.config(e, op, 64, 1)
			cfg.Prefix, cfg.Keys, cfg.Keep, cfg.Reuse = fmt.Sprintf("/tree%d", x), x, true, i > 0
			if err := g.point(ctx, e, c, float64(x), cfg); err != nil {
				return err
			}
		}
	}
	return g.restarts(ctx, e)
}

// restarts restarts one server that does not lead, and then all.
func (g *growth) restarts(ctx context.Context, e *system.Ensemble) error {
	leader, err := load.Leader(ctx, e.Hosts)
	if err != nil {
		return err
	}
	one := (leader + 1) % len(e.Processes)
	e.Processes[one].Kill()
	took, err := g.restart(ctx, e, one)
	if err != nil {
		return err
	}
	e.Stop()
	all, err := g.restart(ctx, e, 0, 1, 2)
	if err != nil {
		return err
	}
	g.facts = append(g.facts, fmt.Sprintf("**Restart** with a tree of %s znodes: a follower killed with -9 "+
		"serves again %s after its start, an ensemble that was stopped %s after its start.",
		report.Count(float64(g.o.Znodes)), report.Time(took), report.Time(all)))
	return nil
}

// restart starts servers and returns the time until all of the ensemble serve.
func (g *growth) restart(
	ctx context.Context, e *system.Ensemble, servers ...int,
) (time.Duration, error) {
	start := time.Now()
	for _, i := range servers {
		if err := e.Restart(i); err != nil {
			return 0, err
		}
	}
	err := e.Wait(ctx)
	return time.Since(start), err
}

// children grows the list of one znode, adds and removes at its end, and reads it.
func (g *growth) children(ctx context.Context) error {
	c := &curve{ID: "children", X: "children", Times: true,
		Title: "children of one znode, a request at a time"}
	e, err := g.up(ctx, system.Setup{})
	if err != nil {
		return err
	}
	defer e.Down()
	conn, err := client.Connect(ctx, e.Hosts[0], client.WithMaxReply(listBytes))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the ensemble is thrown away
	// The name under which package load puts its creates.
	parent := "/children/new"
	if err := conn.EnsurePath(ctx, parent, client.Persistent); err != nil {
		return err
	}
	have := 0
	for _, x := range tens(10, g.o.Znodes) {
		if err := g.grow(ctx, conn, parent, have, x); err != nil {
			return err
		}
		have = x
		cfg := g.config(e, load.Create, 1, 1)
		cfg.Mix = load.Mix{{Op: load.Create, Weight: 1}, {Op: load.Delete, Weight: 1}}
		cfg.Prefix, cfg.Keep, cfg.Reuse = "/children", true, true
		if err := g.point(ctx, e, c, float64(x), cfg); err != nil {
			return err
		}
		if err := g.list(ctx, c, conn, parent, float64(x)); err != nil {
			return err
		}
	}
	return nil
}

const (
	// listBytes is room for the names of the largest list.
	listBytes = 512 << 20
	// growOps is the length of a transaction that adds children.
	growOps = 500
	// growAhead is how many of them are under way.
	growAhead = 8
	// lists is how often a list is read.
	lists = 7
)

// grow adds children from one number up to another.
func (g *growth) grow(
	ctx context.Context, conn *client.Client, parent string, from, upto int,
) error {
	var ahead []*client.Pending[client.MultiReply]
	for from < upto || len(ahead) > 0 {
		if from < upto && len(ahead) < growAhead {
			m := conn.Multi()
			for ; from < upto && m.Len() < growOps; from++ {
				m.Create(parent+"/child"+strconv.Itoa(from), nil, client.Persistent)
			}
			ahead = append(ahead, m.CommitAsync(ctx))
			continue
		}
		if _, err := ahead[0].Wait(ctx); err != nil {
			return fmt.Errorf("adding children: %w", err)
		}
		ahead = ahead[1:]
	}
	return nil
}

// list takes the time of reading the names of all children.
func (g *growth) list(
	ctx context.Context, c *curve, conn *client.Client, parent string, x float64,
) error {
	var h load.Histogram
	start := time.Now()
	for range lists {
		begin := time.Now()
		if _, _, err := conn.Children(ctx, parent); err != nil {
			return fmt.Errorf("listing %g children: %w", x, err)
		}
		h.Record(time.Since(begin))
	}
	var counts load.Counts
	h.AddTo(&counts)
	g.add(c, "children", figure{X: x, PerSecond: lists / time.Since(start).Seconds(), Syncs: -1,
		P50: counts.Percentile(50), P99: counts.Max(), P999: counts.Max()})
	return nil
}
