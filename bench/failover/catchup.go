package failover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// catchUp is the effect of a follower's death, absence and return on clients of the other
// servers.
type catchUp struct {
	without, absent, back load.Latency // of writes: with all servers, while one is down, and while it catches up
	took                  time.Duration
	wrong                 []string
}

// aimCatchUp is how much higher the 99th percentile of others' writes may be while a server catches up.
const aimCatchUp = 1.5

// ratio is how much higher it was.
func (c *catchUp) ratio() float64 {
	return float64(c.back.P99) / float64(c.without.P99)
}

func (c *catchUp) line(n int) string {
	text := fmt.Sprintf("%3d ", n)
	for _, part := range []struct {
		what string
		l    *load.Latency
	}{{"with all servers", &c.without}, {"; one down", &c.absent}, {"; it catches up", &c.back}} {
		text += fmt.Sprintf("%s: p50 %s, p99 %s, most %s", part.what, report.Time(part.l.P50.Duration()),
			report.Time(part.l.P99.Duration()), report.Time(part.l.Max.Duration()))
	}
	text += fmt.Sprintf("; it took %s; p99 %.2f x", report.Time(c.took), c.ratio())
	for _, wrong := range c.wrong {
		text += "\n     WRONG: " + wrong
	}
	return text
}

// catchUp kills a follower, lets the others write for a while, and starts it again.
func (r *runner) catchUp(ctx context.Context) (*catchUp, error) {
	leader, err := r.settled(ctx)
	if err != nil {
		return nil, err
	}
	others := r.others([]int{leader})
	down := others[r.rng.IntN(len(others))]
	users, err := r.users(ctx, r.others([]int{down}))
	if err != nil {
		return nil, err
	}
	writing, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	all := slices.Concat(users[:]...)
	for _, u := range all {
		running.Go(func() { u.Run(writing) })
	}
	c := &catchUp{}
	phase := func(into *load.Latency, wait func() error) error {
		var h load.Histogram
		for _, u := range all {
			u.Tally().Measure(&h)
		}
		err := wait()
		var counts load.Counts
		h.AddTo(&counts)
		*into = counts.Latency()
		return err
	}
	pause := func() error {
		select {
		case <-time.After(r.c.Duration):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := phase(&c.without, pause); err != nil {
		return nil, err
	}
	r.ensemble.Processes[down].Kill()
	if err := phase(&c.absent, pause); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := r.ensemble.Restart(down); err != nil {
		return nil, err
	}
	if err := phase(&c.back, func() error { return r.caughtUp(ctx, leader, down) }); err != nil {
		return nil, err
	}
	c.took = time.Since(begun)
	stop()
	running.Wait()
	o := &outage{}
	r.measure(o, users)
	err = r.check(ctx, o, users)
	c.wrong = o.wrong
	return c, err
}

// caughtUp waits until a server has everything that the leader had when it was asked.
func (r *runner) caughtUp(ctx context.Context, leader, server int) error {
	want, err := load.Zxid(ctx, r.ensemble.Hosts[leader])
	if err != nil {
		return err
	}
	return wait.For(ctx, fmt.Sprintf("server %d has caught up", server+1), settleTime, func() error {
		have, err := load.Zxid(ctx, r.ensemble.Hosts[server])
		if err == nil && have < want {
			err = fmt.Errorf("it has %#x, and the leader had %#x", have, want)
		}
		return err
	})
}

// catchUpTable has a row for each configuration whose fault is a follower's return.
func catchUpTable() *report.Table {
	return report.NewTable("configuration", "returns", "p99 with all servers", "p99 while one is down",
		"p99 while it catches up", "most", "ratio of p99, median, most", "at most 1.5 x", "writes lost or done twice")
}

// catchUpRow has the cells of a configuration.
func catchUpRow(c *config, all []*catchUp) []any {
	if len(all) == 0 {
		return []any{c, 0}
	}
	var without, absent, back, most, ratios []float64
	met, wrong := 0, 0
	for _, one := range all {
		without, absent = append(without, float64(one.without.P99)), append(absent, float64(one.absent.P99))
		back, most = append(back, float64(one.back.P99)), append(most, float64(one.back.Max))
		ratios = append(ratios, one.ratio())
		if one.ratio() <= aimCatchUp {
			met++
		}
		wrong += len(one.wrong)
	}
	micros := func(v float64) string { return report.Time(load.Micros(v).Duration()) }
	return []any{c, len(all), micros(report.Middle(without)), micros(report.Middle(absent)),
		micros(report.Middle(back)), micros(slices.Max(most)),
		fmt.Sprintf("%.2f, %.2f", report.Middle(ratios), slices.Max(ratios)), fmt.Sprintf("%d of %d", met, len(all)),
		wrong}
}
