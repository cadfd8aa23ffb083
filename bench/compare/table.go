package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// over is the median of a figure over the rounds.
func over(all []*measurement, figure func(*measurement) float64) float64 {
	return report.Middle(values(all, figure))
}

// show writes a figure in its unit.
func show(c column, v float64) string {
	switch c {
	case throughput:
		return report.Count(v) + "/s"
	case memory:
		return report.Bytes(int64(v))
	case cpuShare:
		return fmt.Sprintf("%.2f %% of a core", 100*v)
	}
	return report.Time(time.Duration(v))
}

// summary is the table of the aims.
func (c *comparison) summary() string {
	more := []string{"aim", "ratio", "met", "p99 and p99.9, ratio to ZooKeeper's"}
	if c.suite == HTTP {
		more = []string{"ratio"}
	}
	t := report.NewTable(slices.Concat([]string{"load"}, c.names, more)...)
	for i := range c.rows {
		r := &c.rows[i]
		cells := []any{c.title(r)}
		for _, name := range c.names {
			cells = append(cells, cell(r, c.results[r.id][name]))
		}
		aim, ratio, met := c.verdict(r)
		if c.suite == HTTP {
			t.Row(append(cells, ratio)...)
		} else {
			t.Row(append(cells, aim, ratio, met, c.tails(r))...)
		}
	}
	return t.String()
}

// cell is a system's figure, and for a throughput also its price: the tail of the latencies and
// disk syncs.
func cell(r *row, all []*measurement) string {
	if len(all) == 0 {
		return ""
	}
	text := "**" + show(r.column, over(all, r.figure)) + "**"
	if !r.answers() {
		return text
	}
	if r.column != throughput {
		text += "<br>" + show(throughput, over(all, perSecond))
	}
	text += "<br>p99 " + show(median, over(all, p99)) + ", p99.9 " + show(median, over(all, p999))
	if all[0].syncs >= 0 {
		text += fmt.Sprintf("<br>%.3f syncs an answer", over(all, syncsAnAnswer))
	}
	return text
}

func perSecond(m *measurement) float64 { return m.result.Total.PerSecond }
func p99(m *measurement) float64       { return float64(m.result.Total.Latency.P99) }
func p999(m *measurement) float64      { return float64(m.result.Total.Latency.P999) }

func p50(m *measurement) float64 { return float64(m.result.Total.Latency.P50) }

func answers(m *measurement) float64 {
	return max(m.result.Total.PerSecond*m.result.Elapsed.Seconds(), 1)
}

func syncsAnAnswer(m *measurement) float64 { return float64(m.syncs) / answers(m) }

// tails compares the tail of zk-lite's latencies with ZooKeeper's, which it is
// not to exceed.
func (c *comparison) tails(r *row) string {
	ours, theirs := c.results[r.id]["zk-lite"], c.results[r.id]["ZooKeeper"]
	if r.client != "" || !r.answers() || len(ours) == 0 || len(theirs) == 0 {
		return ""
	}
	a, b := over(ours, p99)/over(theirs, p99), over(ours, p999)/over(theirs, p999)
	if math.IsNaN(a + b) {
		return "" // nothing was answered
	}
	word := "not worse"
	if a > 1 || b > 1 {
		word = "**worse**"
	}
	return fmt.Sprintf("%.2f x, %.2f x: %s", a, b, word)
}

// short lists the rows that fall short of an aim.
func (c *comparison) short() string {
	var b strings.Builder
	for i := range c.rows {
		r := &c.rows[i]
		aim, ratio, met := c.verdict(r)
		if met == "**no**" {
			if ratio != "" {
				ratio = " (" + ratio + ")"
			}
			fmt.Fprintf(&b, "- %s: %s, and it is %s%s\n", c.title(r), aim,
				show(r.column, over(c.results[r.id]["zk-lite"], r.figure)), ratio)
		}
		if tails := c.tails(r); strings.Contains(tails, "**") {
			fmt.Fprintf(&b, "- %s: p99 and p99.9 are %s than ZooKeeper's\n", c.title(r),
				strings.ReplaceAll(tails, "**", ""))
		}
	}
	return b.String()
}

func (c *comparison) title(r *row) string {
	if r.kind == system.Memory {
		return fmt.Sprintf("%s znodes of 100 bytes, live heap of a server",
			report.Count(float64(c.o.Znodes)))
	}
	if r.client != "" {
		return r.title + ", " + r.client
	}
	switch r.column {
	case median:
		return r.title + ", p50"
	case tail:
		return r.title + ", p99"
	case farTail:
		return r.title + ", p99.9"
	}
	return r.title
}

// verdict compares zk-lite with its aim.
func (c *comparison) verdict(r *row) (aim, ratio, met string) {
	other := "ZooKeeper"
	switch {
	case r.ofNoop:
		other = "noop"
	case r.http != nil:
		other = "etcd"
	}
	ours, theirs := c.results[r.id]["zk-lite"], c.results[r.id][other]
	mark := func(ok bool) string {
		if ok {
			return "yes"
		}
		return "**no**"
	}
	quotient := 0.0
	if len(ours) > 0 && len(theirs) > 0 {
		quotient = over(ours, r.figure) / over(theirs, r.figure)
		ratio = fmt.Sprintf("%.2f x %s", quotient, other)
	}
	switch {
	case r.aim == 0 && r.aimTime == 0 && r.aimShare == 0: // none
	case r.aimTime != 0:
		aim = "under " + report.Time(r.aimTime) + ", no client of a survivor dropped"
		if len(ours) > 0 {
			dropped := 0
			for _, m := range ours {
				dropped += m.result.Failover.DroppedOfOthers
			}
			met = mark(over(ours, r.figure) < float64(r.aimTime) && dropped == 0)
		}
	case r.aimShare != 0:
		aim = "under " + show(cpuShare, r.aimShare)
		if len(ours) > 0 {
			met = mark(over(ours, r.figure) < r.aimShare)
		}
	case r.column == throughput:
		aim = fmt.Sprintf("at least %g x %s", r.aim, other)
		if ratio != "" {
			met = mark(quotient >= r.aim)
		}
	default:
		aim = fmt.Sprintf("at most %g x %s", r.aim, other)
		if ratio != "" {
			met = mark(quotient <= r.aim)
		}
	}
	return aim, ratio, met
}

// details is a table of everything measured, a line for each row and system.
func (c *comparison) details() string {
	t := report.NewTable("load", "system", "/s", "least to most", "p50", "p99", "p99.9", "max", "CPU an answer",
		"syncs an answer", "errors")
	for i := range c.rows {
		r := &c.rows[i]
		if r.kind == system.Memory || r.kind == system.Idle {
			continue // neither answers anything
		}
		for _, name := range c.names {
			if all := c.results[r.id][name]; len(all) > 0 {
				t.Row(append([]any{r.title, name}, detail(all)...)...)
			}
		}
	}
	return t.String()
}

// detail is the rest of a line of details: medians over the rounds.
func detail(all []*measurement) []any {
	var rates []float64
	errors, syncs := uint64(0), ""
	for _, m := range all {
		rates = append(rates, m.result.Total.PerSecond)
		errors += m.result.Unanswered
		for _, n := range m.result.Total.Errors {
			errors += n
		}
	}
	if all[0].syncs >= 0 {
		syncs = fmt.Sprintf("%.3f", over(all, syncsAnAnswer))
	}
	latency := func(pick func(*load.Latency) load.Micros) string {
		return report.Time(time.Duration(over(all, func(m *measurement) float64 {
			return float64(pick(&m.result.Total.Latency))
		})))
	}
	cpu := over(all, func(m *measurement) float64 { return float64(m.result.CPUPerOp()) })
	return []any{report.Count(report.Middle(rates)),
		report.Count(slices.Min(rates)) + " to " + report.Count(slices.Max(rates)),
		latency(func(l *load.Latency) load.Micros { return l.P50 }),
		latency(func(l *load.Latency) load.Micros { return l.P99 }),
		latency(func(l *load.Latency) load.Micros { return l.P999 }),
		latency(func(l *load.Latency) load.Micros { return l.Max }),
		report.Time(time.Duration(cpu)), syncs, errors}
}

// failovers lists every kill.
func (c *comparison) failovers() string {
	var b strings.Builder
	for _, name := range c.names {
		for _, m := range c.results["leader-killed"][name] {
			f := m.result.Failover
			failed := m.result.Unanswered
			for _, n := range m.result.Total.Errors {
				failed += n
			}
			least := ""
			if f.Open {
				least = "at least "
			}
			fmt.Fprintf(&b, "- %s: nobody served for %s%s, a client at most %s; of the connections to the "+
				"killed server %d dropped, to survivors %d; %d sessions expired, %d operations failed\n", name, least,
				report.Time(f.Longest.Duration()), report.Time(f.Clients.Max.Duration()),
				f.DroppedOfKilled, f.DroppedOfOthers, f.Expired, failed)
		}
	}
	return b.String()
}

// memories lists heap and resident memory of the filled servers.
func (c *comparison) memories() string {
	var b strings.Builder
	for _, name := range c.names {
		for _, m := range c.results["memory"][name] {
			var resident, peak int64
			for _, p := range m.result.Servers {
				resident, peak = max(resident, p.RSS), max(peak, p.PeakRSS)
			}
			fmt.Fprintf(&b, "- %s: live heap %s, resident %s, at most %s; filled at %s znodes a second\n",
				name, report.Bytes(m.heap), report.Bytes(resident), report.Bytes(peak),
				report.Count(m.result.Total.PerSecond))
		}
	}
	return b.String()
}
