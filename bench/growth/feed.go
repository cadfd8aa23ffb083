package growth

import (
	"context"
	"fmt"
	"slices"

	"github.com/zk-lite/zk-lite/bench/httpload"
	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

const (
	feedRate      = 50_000 // changes a second that are asked for
	feedFollowers = 100
)

// feed measures what followers of the change feed cost writers, and how long after its acknowledgement a change
// arrives. Followers read server-sent events, as that costs this process least, and look at zxids alone. Those of all
// changes are to get the rate times their number, which is more than two processors encode: their row shows what is
// left of either then.
func (g *growth) feed(ctx context.Context) error {
	t := report.NewTable("followers", "sets/s", "p50, p99 of a set", "not answered", "changes/s that arrived",
		"lag p50, p99", "too late", "memory of a server", "CPU: servers, generator (cores)")
	for _, row := range []struct {
		what      string
		followers int
		all       bool
	}{
		{"none", 0, false}, {"100, of a znode each", feedFollowers, false}, {"10, of all", feedFollowers / 10, true},
		{"100, of all", feedFollowers, true},
	} {
		if err := g.followed(ctx, t, row.what, row.followers, row.all); err != nil {
			return fmt.Errorf("followers: %s: %w", row.what, err)
		}
	}
	g.facts = append(g.facts, fmt.Sprintf("**Followers of changes**: %s sets a second of 100 bytes are asked for, of "+
		"which latency counts from when each was due; lag is the time from acknowledgement to arrival.\n\n%s",
		report.Count(feedRate), t))
	return nil
}

// followed measures a row, on an ensemble of its own.
func (g *growth) followed(ctx context.Context, t *report.Table, what string, followers int, all bool) error {
	e, err := g.up(ctx, system.Setup{HTTP: true})
	if err != nil {
		return err
	}
	defer e.Down()
	cfg := g.config(e, load.Set, 48, load.OpenInFlight)
	cfg.Rate, cfg.Keys = feedRate, feedFollowers
	paths := cfg.Paths()[:followers]
	if all {
		paths = slices.Repeat([]string{cfg.Prefix}, followers)
	}
	from := cfg
	from.Hosts = e.HTTP
	feeds, err := httpload.Follow(ctx, &from, paths)
	if err != nil {
		return err
	}
	cfg.Measured = feeds.Measured
	if followers > 0 {
		cfg.Acknowledged = feeds.Acknowledged
	}
	r, err := e.Run(ctx, system.Load, cfg, 0)
	feeds.Close()
	if err != nil {
		return err
	}
	got, f := feeds.Result(), figureOf(0, r, &r.Total)
	t.Row(what, report.Count(f.PerSecond), report.Time(f.P50)+", "+report.Time(f.P99), f.Errors,
		report.Count(float64(got.Changes)/r.Elapsed.Seconds()),
		report.Time(got.Lag.P50.Duration())+", "+report.Time(got.Lag.P99.Duration()), got.Late,
		report.Bytes(f.Memory), fmt.Sprintf("%.2f, %.2f", f.Servers, f.Generator))
	return nil
}
