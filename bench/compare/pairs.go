package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// pairs compares this checkout with each other build, round by round: the machine's
// speed drifts from minute to minute, and both sides of a pair have met the same.
func (c *comparison) pairs() string {
	var b strings.Builder
	for _, build := range c.o.builds {
		fmt.Fprintf(&b, "| load | %[1]s | %[2]s | %[2]s to %[1]s, ratio | CPU an answer, ratio | verdict |\n"+
			"|---|---|---|---|---|---|\n", build.name, system.Ours)
		for i := range c.rows {
			r := &c.rows[i]
			ours, theirs := paired(c.results[r.id][system.Ours], c.results[r.id][build.name])
			if len(ours) == 0 {
				continue
			}
			cpu := ""
			if r.kind != system.Memory && r.kind != system.Idle && r.client == "" {
				cpu = ratios(ours, theirs, cpuPerAnswer)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", c.title(r), r.spread(theirs), r.spread(ours),
				ratios(ours, theirs, r.figure), cpu, r.against(ours, theirs))
		}
		b.WriteString("\n")
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
