package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// document is the text of the results so far.
func (c *comparison) document() string {
	var b strings.Builder
	head := system.Head{Began: c.began, How: fmt.Sprintf("medians of %d rounds of %v a row after %v of warm-up, "+
		"%v of JIT warm-up after each start", c.o.Rounds, c.o.Duration, c.o.WarmUp, c.o.JIT)}
	if c.end != nil {
		head.End = fmt.Errorf("%w: %d rounds of %d are", c.end, c.rounds, c.o.Rounds)
	}
	fmt.Fprintf(&b, "## Suite %s\n", c.suite)
	for _, s := range c.systems {
		head.Versions = append(head.Versions, s.Name()+": "+c.versions[s.Name()])
	}
	head.Versions = append(head.Versions, c.o.Conditions()...)
	b.WriteString(c.site.Head(&head))
	if c.suite == Clients {
		b.WriteString(c.clientTable())
	} else {
		fmt.Fprintf(&b, "Disk syncs are those of all three servers, %s.\n\n%s", c.counted(), c.summary())
	}
	if text := c.short(); text != "" {
		fmt.Fprintf(&b, "\nShort of an aim:\n\n%s", text)
	}
	if text := c.pairs(); text != "" {
		b.WriteString("\n### Builds in pairs\n\n" + text)
	}
	if c.suite != Clients {
		fmt.Fprintf(&b, "\n### Details\n\nCPU is that of all three servers.\n\n%s", c.details())
	}
	for _, part := range []struct{ title, text string }{
		{"Operations", c.operations()},
		{"The leader killed", c.failovers()}, {"Memory", c.memories()},
		{"Begun again", c.again()},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "\n### %s\n\n%s", part.title, part.text)
		}
	}
	b.WriteString("\n### Settings\n\n")
	for _, s := range c.systems {
		for _, line := range s.Settings() {
			fmt.Fprintf(&b, "- %s: `%s`\n", s.Name(), line)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// again lists the rows that had to be repeated, and those that were given up.
func (c *comparison) again() string {
	var b strings.Builder
	for _, t := range c.troubles {
		end := "begun again on fresh servers"
		if t.given {
			end = "given up for this round"
		}
		where := fmt.Sprintf("round %d", t.round)
		if t.round == 0 {
			where = "after the rounds"
		}
		fmt.Fprintf(&b, "- %s, %s, %s: %s (`%s`)\n", t.row, t.system, where, end,
			strings.ReplaceAll(t.why, "`", "'"))
	}
	return b.String()
}

// counted says how syncs were counted.
func (c *comparison) counted() string {
	if c.perf {
		return "counted by the kernel (perf stat on fdatasync, fsync, msync, sync_file_range, and " +
			"io_submit and pwritev2, by which zk-lite's log writes durably) during the measured time"
	}
	return "zk-lite's counted by itself (mntr, log_fsyncs_total), the others' not counted"
}

// pairs compares this checkout with each other build, round by round: the machine's
// speed drifts from minute to minute, and both sides of a pair have met the same.
func (c *comparison) pairs() string {
	var b strings.Builder
	for _, build := range c.o.Builds {
		t := report.NewTable("load", build.Name, system.Ours, system.Ours+" to "+build.Name+", ratio",
			"CPU an answer, ratio", "verdict")
		for i := range c.rows {
			r := &c.rows[i]
			ours, theirs := paired(c.results[r.id][system.Ours], c.results[r.id][build.Name])
			if len(ours) == 0 {
				continue
			}
			cpu := ""
			if r.kind != system.Memory && r.kind != system.Idle && r.client == "" {
				cpu = ratios(ours, theirs, cpuPerAnswer)
			}
			t.Row(c.title(r), r.spread(theirs), r.spread(ours), ratios(ours, theirs, r.figure), cpu,
				r.against(ours, theirs))
		}
		fmt.Fprintf(&b, "%s\n", t)
	}
	if b.Len() == 0 {
		return ""
	}
	return "Median (least to most) of the rounds that both completed; a ratio is that of each round's pair. The\n" +
		"verdict is \"same\" where the median lies within the other build's least and most.\n\n" +
		strings.TrimSuffix(b.String(), "\n")
}

// paired are the measurements of the rounds that both have.
func paired(a, b []*measurement) (ours, theirs []*measurement) {
	for _, m := range a {
		i := slices.IndexFunc(b, func(other *measurement) bool { return other.round == m.round })
		if i >= 0 {
			ours, theirs = append(ours, m), append(theirs, b[i])
		}
	}
	return ours, theirs
}

func cpuPerAnswer(m *measurement) float64 { return float64(m.result.CPUPerOp()) }

// values are a figure's, a round each.
func values(all []*measurement, figure func(*measurement) float64) (v []float64) {
	for _, m := range all {
		v = append(v, figure(m))
	}
	return v
}

// ratios are those of the pairs: their median, least and most.
func ratios(ours, theirs []*measurement, figure func(*measurement) float64) string {
	a, b := values(ours, figure), values(theirs, figure)
	for i := range a {
		if b[i] == 0 {
			return ""
		}
		a[i] /= b[i]
	}
	return fmt.Sprintf("**%.2f** (%.2f to %.2f)", report.Middle(a), slices.Min(a), slices.Max(a))
}

// spread is the row's figure: median, least and most.
func (r *row) spread(all []*measurement) string {
	v := values(all, r.figure)
	return fmt.Sprintf("%s (%s to %s)", show(r.column, report.Middle(v)), show(r.column, slices.Min(v)),
		show(r.column, slices.Max(v)))
}

// against judges a median by the other build's rounds.
func (r *row) against(ours, theirs []*measurement) string {
	median, other := report.Middle(values(ours, r.figure)), values(theirs, r.figure)
	switch least, most := slices.Min(other), slices.Max(other); {
	case least <= median && median <= most:
		return "same"
	case (median > most) == (r.column == throughput):
		return "better"
	}
	return "**worse**"
}
