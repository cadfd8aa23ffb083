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
	peers    []peer
	versions map[string]string
	all      []*measurement
	troubles []string
	end      error // why not all was measured
}

// text is the section of the document.
func (t *table) text() string {
	var b strings.Builder
	head := system.Head{Began: t.began, End: t.end,
		How: fmt.Sprintf("medians of %d rounds of %v a row after %v of warm-up, %v of JIT warm-up after "+
			"each start", t.o.rounds, t.o.duration, t.o.warmUp, t.o.jit)}
	for _, p := range t.peers {
		head.Versions = append(head.Versions, p.Name()+": "+t.versions[p.Name()])
	}
	head.Versions = append(head.Versions,
		"three servers each, one request under way on each connection, 100-byte values, 256 keys")
	b.WriteString(t.site.Head(&head))
	b.WriteString("| load | etcd's JSON gateway | zk-lite | ratio |\n|---|---|---|---|\n")
	for _, r := range rows() {
		theirs, ours := t.of(r.id, "etcd"), t.of(r.id, "zk-lite")
		ratio := ""
		if len(theirs) > 0 && len(ours) > 0 {
			ratio = fmt.Sprintf("%.2f x", over(ours, rate)/over(theirs, rate))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.title, cell(theirs), cell(ours), ratio)
	}
	b.WriteString("\n")
	for _, p := range t.peers {
		for _, line := range p.Settings() {
			fmt.Fprintf(&b, "- %s: `%s`\n", p.Name(), line)
		}
	}
	b.WriteString("- zk-lite: `admin.serverPort=PORT` opens the HTTP port\n")
	for _, trouble := range t.troubles {
		fmt.Fprintf(&b, "- Left out of its median: %s\n", trouble)
	}
	b.WriteString("\n")
	return b.String()
}

// of are the rounds of one figure.
func (t *table) of(row, name string) (found []*measurement) {
	for _, m := range t.all {
		if m.Row == row && m.System == name {
			found = append(found, m)
		}
	}
	return found
}

func rate(m *measurement) float64 { return m.Result.Total.PerSecond }

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
	latency := func(pick func(*load.Latency) load.Micros) string {
		return report.Time(time.Duration(over(all, func(m *measurement) float64 {
			return float64(pick(&m.Result.Total.Latency))
		})))
	}
	text := fmt.Sprintf("**%s/s**<br>p50 %s, p99 %s, p99.9 %s<br>%s of the servers' CPU",
		report.Count(over(all, rate)), latency(func(l *load.Latency) load.Micros { return l.P50 }),
		latency(func(l *load.Latency) load.Micros { return l.P99 }),
		latency(func(l *load.Latency) load.Micros { return l.P999 }),
		report.Time(time.Duration(over(all, func(m *measurement) float64 {
			return float64(m.Result.CPUPerOp())
		}))))
	if all[0].Syncs >= 0 {
		text += fmt.Sprintf(", %.3f syncs an answer", over(all, func(m *measurement) float64 {
			return float64(m.Syncs) / max(m.Result.Total.PerSecond*m.Result.Elapsed.Seconds(), 1)
		}))
	}
	if n := over(all, troubled); n > 0 {
		text += fmt.Sprintf("<br>%.0f errors", n)
	}
	return text
}

// troubled counts errors and requests without an answer.
func troubled(m *measurement) float64 {
	n := m.Result.Unanswered
	for _, k := range m.Result.Total.Errors {
		n += k
	}
	return float64(n)
}
