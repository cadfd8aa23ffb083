package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// Of the workloads of YCSB, as Oxia's report has them (July 2026): Options.Znodes keys of so many bytes.
const ycsbValue = 64

// mostSuffix ends the id of a row that finds out how much a system can do.
const mostSuffix = "-most"

// ycsbRows are two for each workload: as fast as possible, and at a rate that is the same for all systems.
func ycsbRows() (all []row) {
	for _, w := range []struct{ name, text string }{{"a", "50 % get, 50 % set"}, {"b", "95 % get, 5 % set"},
		{"c", "get"}, {"d", "95 % get of the latest, 5 % create"}} {
		id := "ycsb-" + w.name
		title := fmt.Sprintf("YCSB %s (%s)", strings.ToUpper(w.name), w.text)
		all = append(all, row{id: id + mostSuffix, title: title + ", 64 connections x 32 in flight", mix: id, conns: 64,
			inFlight: 32, aim: 1, systems: system.Known()},
			row{id: id, title: title + " at a rate", mix: id, conns: 64, inFlight: load.OpenInFlight, column: farTail,
				aim: 0.5, systems: system.Known()})
	}
	return all
}

// isYCSB reports whether a row needs the keys of the workloads.
func (r *row) isYCSB() bool { return strings.HasPrefix(r.mix, "ycsb-") }

// fixRates measures what every system can do, once, and gives the rows at a rate theirs: a share of what ZooKeeper, or
// the slowest system, has done.
func (c *comparison) fixRates(ctx context.Context) error {
	picked, rounds := c.rows, c.o.Rounds
	var ids []string
	for _, r := range picked {
		if r.column == farTail {
			ids = append(ids, r.id+mostSuffix)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	c.rows, c.o.Rounds = selected(ycsbRows(), ids), 1
	err := c.measure(ctx)
	c.rows, c.o.Rounds, c.rounds = picked, rounds, 0
	if err != nil {
		return err
	}
	for i := range c.rows {
		r := &c.rows[i]
		if r.column != farTail {
			continue
		}
		of, most := c.yardstick(c.results[r.id+mostSuffix])
		if most < 1 {
			return errors.New(r.id + ": no system has shown what it can do")
		}
		r.rate = math.Ceil(c.o.Share * most)
		r.title = strings.TrimSuffix(r.title, "at a rate") +
			fmt.Sprintf("at %s a second (%g of what %s can do)", report.Count(r.rate), c.o.Share, of)
	}
	return nil
}

// yardstick is the system whose throughput rates are shares of, and that throughput.
func (c *comparison) yardstick(all map[string][]*measurement) (name string, most float64) {
	if own := all[system.Apache]; len(own) > 0 && !c.o.OfSlowest {
		return system.Apache, over(own, perSecond)
	}
	for _, s := range c.names {
		if own := all[s]; len(own) > 0 && (name == "" || over(own, perSecond) < most) {
			name, most = s, over(own, perSecond)
		}
	}
	return name, most
}

// operations is a table of the rows at a rate: each operation's latencies, medians over the rounds with the most in
// brackets.
func (c *comparison) operations() string {
	t := report.NewTable("load", "system", "operation", "/s", "p50", "p99", "p99.9", "longest", "errors")
	rows := 0
	for i := range c.rows {
		r := &c.rows[i]
		if r.column != farTail {
			continue
		}
		for _, name := range c.names {
			all := c.results[r.id][name]
			if len(all) == 0 {
				continue
			}
			for k := range all[0].result.Ops {
				t.Row(append([]any{r.title, name}, operation(all, k)...)...)
				rows++
			}
		}
	}
	if rows == 0 {
		return ""
	}
	return t.String()
}

// operation is the rest of a line of operations, of the k-th of a mix.
func operation(all []*measurement, k int) []any {
	of := func(m *measurement) *load.OpResult { return &m.result.Ops[k] }
	latency := func(pick func(*load.Latency) load.Micros) string {
		v := values(all, func(m *measurement) float64 { return float64(pick(&of(m).Latency)) })
		return fmt.Sprintf("%s (%s)", show(median, report.Middle(v)), report.Time(time.Duration(slices.Max(v))))
	}
	failed := uint64(0)
	for _, m := range all {
		for _, n := range of(m).Errors {
			failed += n
		}
	}
	return []any{of(all[0]).Name, report.Count(over(all, func(m *measurement) float64 { return of(m).PerSecond })),
		latency(func(l *load.Latency) load.Micros { return l.P50 }),
		latency(func(l *load.Latency) load.Micros { return l.P99 }),
		latency(func(l *load.Latency) load.Micros { return l.P999 }),
		latency(func(l *load.Latency) load.Micros { return l.Max }), failed}
}
