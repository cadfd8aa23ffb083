package overload

import (
	"fmt"
	"slices"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
)

// table has a line for each system: medians over the rounds, and the most in brackets; sums of what should be 0.
func table(names []string, all []*round) *report.Table {
	t := report.NewTable("system", "served in a closed loop", "flood: offered, served, connections ended",
		"alone: p50, p99, p99.9, longest", "beside: p50, p99, p99.9, longest", "ratio of p50, p99, p99.9",
		"clients served beside", "without an answer, errors", "connections ended, sessions expired",
		"peak memory of a server: alone, beside", "liveness: longest, later than 1 s")
	for _, name := range names {
		var own []*round
		for _, r := range all {
			if r.System == name {
				own = append(own, r)
			}
		}
		if len(own) > 0 {
			t.Row(row(name, own)...)
		}
	}
	return t
}

func row(name string, all []*round) []any {
	over := func(pick func(*round) float64) []float64 {
		var v []float64
		for _, r := range all {
			v = append(v, pick(r))
		}
		return v
	}
	rate := func(pick func(*round) float64) string { return report.Count(report.Middle(over(pick))) + "/s" }
	times := func(of func(*round) *load.Result) (text string) {
		for i, pick := range latencies() {
			v := over(func(r *round) float64 { return float64(pick(&of(r).Total.Latency)) })
			text += separator(i) + fmt.Sprintf("%s (%s)", report.Time(time.Duration(report.Middle(v))),
				report.Time(time.Duration(slices.Max(v))))
		}
		return text
	}
	ratios := ""
	for i, pick := range latencies()[:3] {
		v := over(func(r *round) float64 {
			return float64(pick(&r.Beside.Total.Latency)) / float64(max(pick(&r.Alone.Total.Latency), 1))
		})
		ratios += separator(i) + fmt.Sprintf("%.2f (%.2f)", report.Middle(v), slices.Max(v))
	}
	var unanswered, failed, ended, expired, floodEnded, asked, late int
	var longest time.Duration
	for _, r := range all {
		unanswered += int(r.Beside.Unanswered)
		ended, expired = ended+r.Beside.Dropped, expired+r.Beside.Expired
		for _, n := range r.Beside.Total.Errors {
			failed += int(n)
		}
		floodEnded += r.Flood.Dropped
		asked, late, longest = asked+r.Lives.Asked, late+r.Lives.Late, max(longest, r.Lives.Longest.Duration())
	}
	alone, beside := func(r *round) *load.Result { return r.Alone }, func(r *round) *load.Result { return r.Beside }
	return []any{name, rate(func(r *round) float64 { return r.Capacity }),
		rate(func(r *round) float64 { return r.Flood.Config.Rate }) + ", " +
			rate(func(r *round) float64 { return r.Flood.Total.PerSecond }) + ", " + fmt.Sprint(floodEnded),
		times(alone), times(beside), ratios, rate(func(r *round) float64 { return r.Beside.Total.PerSecond }),
		fmt.Sprintf("%d, %d", unanswered, failed), fmt.Sprintf("%d, %d", ended, expired),
		report.Bytes(peak(all, alone)) + ", " + report.Bytes(peak(all, beside)),
		fmt.Sprintf("%s, %d of %d", report.Time(longest), late, asked)}
}

// separator is what stands before the i-th part of a cell.
func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}

// latencies are those of a cell, in its order.
func latencies() []func(*load.Latency) load.Micros {
	return []func(*load.Latency) load.Micros{
		func(l *load.Latency) load.Micros { return l.P50 }, func(l *load.Latency) load.Micros { return l.P99 },
		func(l *load.Latency) load.Micros { return l.P999 }, func(l *load.Latency) load.Micros { return l.Max },
	}
}

// peak is the most resident memory of any server in any round.
func peak(all []*round, of func(*round) *load.Result) (most int64) {
	for _, r := range all {
		for _, p := range of(r).Servers {
			most = max(most, p.PeakRSS)
		}
	}
	return most
}
