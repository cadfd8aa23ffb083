package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
)

// HTML writes a page about a result: the text, and plots of the percentiles of
// each operation and of throughput and latency over time. The plots are SVG
// elements and can be cut out.
func HTML(w io.Writer, r *load.Result) error {
	var text, b strings.Builder
	if err := Text(&text, r); err != nil {
		return err
	}
	title := html.EscapeString(Title(r))
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title>
<style>body{font-family:sans-serif;max-width:820px;margin:2em auto}pre{overflow-x:auto}</style>
</head><body>
<h1>zk-lite bench</h1>
<p>%s</p>
<pre>%s</pre>
`, title, html.EscapeString(r.Started.UTC().Format(time.RFC3339)), html.EscapeString(text.String()))
	for _, p := range Plots(r) {
		b.WriteString(p.SVG())
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// SVG writes the plots of a result below one another as one picture.
func SVG(w io.Writer, r *load.Result) error { return PlotsSVG(w, Plots(r)) }

// PlotsSVG writes plots below one another as one picture.
func PlotsSVG(w io.Writer, plots []*Plot) error {
	height := max(len(plots), 1) * plotHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d">`+"\n", plotWidth, height, plotWidth, height)
	for i, p := range plots {
		fmt.Fprintf(&b, `<g transform="translate(0,%d)">`+"\n%s</g>\n", i*plotHeight, p.SVG())
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Plots are the plots of a result: none without operations.
func Plots(r *load.Result) []*Plot {
	var all []*Plot
	if p := percentiles(r); len(p.Series) > 0 {
		all = append(all, p)
	}
	if len(r.Timeline) < 2 {
		return all
	}
	rate := Series{Name: "answers"}
	var p50, p99, longest Series
	p50.Name, p99.Name, longest.Name = "p50", "p99", "max"
	for _, s := range r.Timeline {
		x := s.At.Seconds()
		rate.Points = append(rate.Points, [2]float64{x, s.PerSecond})
		p50.Points = append(p50.Points, [2]float64{x, micros(s.P50)})
		p99.Points = append(p99.Points, [2]float64{x, micros(s.P99)})
		longest.Points = append(longest.Points, [2]float64{x, micros(s.Max)})
	}
	return append(all,
		&Plot{Title: "Throughput", X: "seconds", Y: "answers a second", Series: []Series{rate}},
		&Plot{Title: "Latency over time", X: "seconds", Y: "us", LogY: true,
			Series: []Series{p50, p99, longest}})
}

// percentiles plots latency over the number of nines, -log10(1 - share), on
// which each further nine has the same width.
func percentiles(r *load.Result) *Plot {
	p := &Plot{Title: "Latency by percentile", X: "percentile", Y: "us", LogY: true}
	const maxNines = 5 // the position of 100 %
	nines := func(percent float64) float64 {
		if percent >= 100 {
			return maxNines
		}
		return -math.Log10(1 - percent/100)
	}
	for _, v := range []float64{0, 50, 90, 99, 99.9, 99.99} {
		p.XTicks = append(p.XTicks, Tick{nines(v), fmt.Sprintf("%g", v)})
	}
	p.XTicks = append(p.XTicks, Tick{maxNines, "max"})
	for _, o := range r.Ops {
		s := Series{Name: o.Name}
		for _, q := range o.Latency.Curve {
			s.Points = append(s.Points, [2]float64{nines(q.Percent), micros(q.At)})
		}
		if len(s.Points) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	return p
}

func micros(m load.Micros) float64 { return float64(m) / float64(time.Microsecond) }
