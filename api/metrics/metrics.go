// Package metrics is the one table of what a server measures, and its writers: Prometheus's
// text format, the lines of mntr, the JSON of the AdminServer's monitor, and
// docs/reference/metrics.md, which a test writes. It takes the measurements that the ZooKeeper port
// and the HTTP port share; it counts nothing itself and starts no goroutine.
package metrics

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/internal/histogram"
)

// Part lists the metrics of one part of the server: emit is called with a name of the
// table and an integer, a float64, an Info, a histogram.Counts, a histogram.Summary, or []Labelled.
type Part func(emit func(name string, value any))

// Info is the value of a metric that has a label instead of a number.
type Info struct{ Label, Value string }

// Labelled is one of a metric's several samples; Labels are as in kind="read".
type Labelled struct {
	Labels string
	Value  any
}

type sample struct {
	name  string
	value any
}

// Samples are the measurements of one moment.
type Samples struct{ all []sample }

// Take asks the parts, of which each has names of its own: a test of package api fails if a server reports one twice.
func Take(parts ...Part) *Samples {
	s := &Samples{}
	for _, part := range parts {
		if part != nil {
			part(func(name string, value any) { s.all = append(s.all, sample{name, value}) })
		}
	}
	return s
}

// Mntr calls line with the samples that are numbers, as mntr prints them.
func (s *Samples) Mntr(line func(key, value string)) {
	s.each(func(name string, value any) {
		if v, ok := value.(float64); ok {
			value = JavaDouble(v)
		}
		line("zk_"+name, fmt.Sprint(value))
	})
}

// JSON adds the samples that are numbers to an object.
func (s *Samples) JSON(out map[string]any) {
	s.each(func(name string, value any) { out[name] = value })
}

// each calls emit with the samples that are numbers, and those of summaries, as ZooKeeper names them.
func (s *Samples) each(emit func(name string, value any)) {
	for _, x := range s.all {
		switch v := x.value.(type) {
		case Info, []Labelled, histogram.Counts:
		case histogram.Summary:
			c := histogram.Counts(v)
			n := c.Total()
			emit("avg_"+x.name, millisOf(c.Sum)/float64(max(n, 1)))
			emit("cnt_"+x.name, n)
			emit("sum_"+x.name, c.Sum.Milliseconds())
			for _, q := range quantiles {
				emit(fmt.Sprintf("p%s_%s", strings.TrimPrefix(q.text, "0."), x.name), c.Quantile(q.of).Milliseconds())
			}
		default:
			emit(x.name, v)
		}
	}
}

// quantiles are those of ZooKeeper's summaries; the median is p50 in mntr.
var quantiles = []struct {
	text string
	of   float64
}{{"0.50", 0.5}, {"0.95", 0.95}, {"0.99", 0.99}, {"0.999", 0.999}}

func millisOf(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Prometheus writes the samples in Prometheus's text format, version 0.0.4.
func (s *Samples) Prometheus(b *bytes.Buffer) {
	for _, x := range s.all {
		samples, several := x.value.([]Labelled)
		if !several {
			samples = []Labelled{{Value: x.value}}
		}
		if len(samples) > 0 {
			Header(b, x.name)
		}
		for _, s := range samples {
			s.write(b, x.name)
		}
	}
}

func (s *Labelled) write(b *bytes.Buffer, name string) {
	labels := ""
	if s.Labels != "" {
		labels = "{" + s.Labels + "}"
	}
	switch v := s.Value.(type) {
	case Info:
		fmt.Fprintf(b, "%s{%s=%s} 1\n", name, v.Label, Quote(v.Value))
	case histogram.Counts:
		WriteHistogram(b, name, s.Labels, &v)
	case histogram.Summary:
		c := histogram.Counts(v)
		for _, q := range quantiles {
			quantile := strconv.FormatFloat(q.of, 'g', -1, 64)
			fmt.Fprintf(b, "%s{quantile=\"%s\"} %v\n", name, quantile, millisOf(c.Quantile(q.of)))
		}
		fmt.Fprintf(b, "%s_sum %v\n%s_count %d\n", name, millisOf(c.Sum), name, c.Total())
	case float64:
		fmt.Fprintf(b, "%s%s %s\n", name, labels, strconv.FormatFloat(v, 'g', -1, 64))
	default:
		fmt.Fprintf(b, "%s%s %v\n", name, labels, v)
	}
}

// WriteHistogram writes a histogram in Prometheus's text format; labels are as in Labelled, or empty.
func WriteHistogram(b *bytes.Buffer, name, labels string, c *histogram.Counts) {
	within, whole := "", ""
	if labels != "" {
		within, whole = labels+",", "{"+labels+"}"
	}
	sum := int64(0)
	for i, n := range c.Within {
		sum += n
		bound := "+Inf"
		if i < len(histogram.Bounds) {
			bound = decimal(histogram.Bounds[i])
		}
		fmt.Fprintf(b, "%s_bucket{%sle=\"%s\"} %d\n", name, within, bound, sum)
	}
	fmt.Fprintf(b, "%s_sum%s %s\n%s_count%s %d\n", name, whole, decimal(c.Sum), name, whole, sum)
}

// decimal writes a duration in seconds.
func decimal(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }

// Header writes the lines before a metric's samples in Prometheus's text format.
func Header(b *bytes.Buffer, name string) {
	m, ok := byName[name]
	if !ok {
		m = Metric{Type: untyped, Help: "Not in the table of metrics."}
	}
	help := m.Help
	if m.Unit != "" {
		help = strings.TrimSuffix(help, ".") + ", in " + m.Unit + "."
	}
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, m.Type)
}

var byName = func() map[string]Metric {
	all := map[string]Metric{}
	for _, m := range table {
		all[m.Name] = m
	}
	return all
}()

// Quote writes a label's value as Prometheus's text format has it.
func Quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}

// JavaDouble writes a number as ZooKeeper's AvgMinMaxCounter does: four decimals, without
// zeros at the end, but with one decimal at least.
func JavaDouble(v float64) string {
	s := strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
