package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// table is everything measured by one call of the command.
type table struct {
	o        *options
	site     *system.Site
	began    time.Time
	versions map[string]string // of the servers
	all      []*measurement
	troubles []string
	end      error // why not all was measured
}

// text is the section of the document.
func (t *table) text() string {
	var b strings.Builder
	head := system.Head{Began: t.began, End: t.end,
		How: fmt.Sprintf("medians of %d rounds of %v a row after %v of warm-up, %v of JIT warm-up after "+
			"each start of the servers", t.o.rounds, t.o.duration, t.o.warmUp, t.o.jit)}
	for _, name := range strings.Split(t.o.systems, ",") {
		head.Versions = append(head.Versions, name+"'s servers: "+t.versions[name])
	}
	head.Versions = append(head.Versions, "go-zookeeper: github.com/go-zookeeper/zk v1.0.4; zk-lite: "+
		"package client of this commit; both with their defaults, a session timeout of 30 s, one "+
		"connection to the leader, 100-byte values")
	b.WriteString(t.site.Head(&head))
	b.WriteString("| servers | load | go-zookeeper | package client | ratio | ahead | " +
		"package client, asynchronous |\n|---|---|---|---|---|---|---|\n")
	for _, server := range strings.Split(t.o.systems, ",") {
		for _, op := range []load.Op{load.Get, load.Set} {
			for _, depth := range depths() {
				t.line(&b, server, op, depth)
			}
		}
	}
	b.WriteString("\n")
	for _, trouble := range t.troubles {
		fmt.Fprintf(&b, "- Left out of its median: %s\n", trouble)
	}
	if len(t.troubles) > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

func (t *table) line(b *strings.Builder, server string, op load.Op, depth int) {
	fmt.Fprintf(b, "| %s | %s, %d in flight |", server, op, depth)
	theirs, our := t.of(server, goZooKeeper, op, depth), t.of(server, blocking, op, depth)
	fmt.Fprintf(b, " %s | %s |", cell(theirs), cell(our))
	if len(theirs) == 0 || len(our) == 0 {
		b.WriteString("  |  |")
	} else {
		ratio := over(our, rate) / over(theirs, rate)
		word := "yes"
		if ratio <= 1 {
			word = "**no**"
		}
		fmt.Fprintf(b, " %.2f x | %s |", ratio, word)
	}
	fmt.Fprintf(b, " %s |\n", cell(t.of(server, async, op, depth)))
}

// of are the rounds of one figure.
func (t *table) of(server, client string, op load.Op, depth int) (found []*measurement) {
	for _, m := range t.all {
		if m.Server == server && m.Client == client && m.Op == op && m.Depth == depth {
			found = append(found, m)
		}
	}
	return found
}

func rate(m *measurement) float64 { return m.PerSecond }

// over is the median of a figure over the rounds.
func over(all []*measurement, figure func(*measurement) float64) float64 {
	var v []float64
	for _, m := range all {
		v = append(v, figure(m))
	}
	return report.Middle(v)
}

// cell is a throughput with what belongs to it.
func cell(all []*measurement) string {
	if len(all) == 0 {
		return ""
	}
	d := func(figure func(*measurement) time.Duration) string {
		return report.Time(time.Duration(over(all, func(m *measurement) float64 { return float64(figure(m)) })))
	}
	text := fmt.Sprintf("**%s/s**<br>p50 %s, p99 %s, p99.9 %s<br>%s of CPU, %.1f allocations an answer",
		report.Count(over(all, rate)), d(func(m *measurement) time.Duration { return m.P50 }),
		d(func(m *measurement) time.Duration { return m.P99 }),
		d(func(m *measurement) time.Duration { return m.P999 }),
		d(func(m *measurement) time.Duration { return m.CPU }),
		over(all, func(m *measurement) float64 { return m.Allocs }))
	if n := over(all, func(m *measurement) float64 { return float64(m.Errors) }); n > 0 {
		text += fmt.Sprintf("<br>%.0f errors", n)
	}
	return text
}
