package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Series is one line of a Plot. Points go up by the first number.
type Series struct {
	Name   string
	Points [][2]float64
}

// Tick is a mark of an axis.
type Tick struct {
	At   float64
	Text string
}

// Plot is a line plot. The x axis is linear; a caller that wants another one maps its points
// and gives XTicks.
type Plot struct {
	Title, X, Y string
	LogY        bool // points at or below 0 are left out
	Series      []Series
	XTicks      []Tick // nil: about six round numbers
}

// Sizes of a plot, in pixels.
const (
	plotWidth   = 760
	plotHeight  = 320
	plotLeft    = 80
	plotRight   = 140 // holds the names of the series
	plotTop     = 34
	plotBottom  = 44
	plotTicks   = 6
	plotLineGap = 16
)

// colours can be distinguished in print and by most colour-blind readers.
func colours() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}
}

// axis maps numbers to pixels.
type axis struct {
	low, high  float64 // of the data, after log10 if log
	from, upto float64 // pixels
	log        bool
	ticks      []Tick
}

func (a *axis) pixel(v float64) float64 {
	if a.log {
		v = math.Log10(v)
	}
	return a.from + (v-a.low)/(a.high-a.low)*(a.upto-a.from)
}

// SVG returns the plot as an SVG element that can be a document of its own or part of a page.
func (p *Plot) SVG() string {
	x, y := p.axes()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="18" font-size="14">%s</text>`+"\n", plotLeft,
		html.EscapeString(p.Title))
	for _, t := range x.ticks {
		at := x.pixel(t.At)
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+
			`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, plotTop, at,
			plotHeight-plotBottom, at, plotHeight-plotBottom+15, html.EscapeString(t.Text))
	}
	for _, t := range y.ticks {
		at := y.pixel(t.At)
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+
			`<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", plotLeft, at,
			plotWidth-plotRight, at, plotLeft-6, at+4, html.EscapeString(t.Text))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+
		`<text x="8" y="%d">%s</text>`+"\n", (plotLeft+plotWidth-plotRight)/2, plotHeight-10,
		html.EscapeString(p.X), plotTop-6, html.EscapeString(p.Y))
	for i, s := range p.Series {
		p.line(&b, i, s, x, y)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// line draws a series and its name, in its colour.
func (p *Plot) line(b *strings.Builder, i int, s Series, x, y *axis) {
	colour := colours()[i%len(colours())]
	var points []string
	for _, q := range s.Points {
		if p.shows(q) {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x.pixel(q[0]), y.pixel(q[1])))
		}
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n",
		strings.Join(points, " "), colour)
	at := plotTop + 10 + i*plotLineGap
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="3"/>`+
		`<text x="%d" y="%d">%s</text>`+"\n", plotWidth-plotRight+10, at-4,
		plotWidth-plotRight+28, at-4, colour, plotWidth-plotRight+34, at, html.EscapeString(s.Name))
}

func (p *Plot) shows(q [2]float64) bool { return !p.LogY || q[1] > 0 }

// axes fit the data: y from 0, or from a power of ten to one.
func (p *Plot) axes() (x, y *axis) {
	x = &axis{low: math.Inf(1), high: math.Inf(-1), from: plotLeft, upto: plotWidth - plotRight}
	y = &axis{from: plotHeight - plotBottom, upto: plotTop, log: p.LogY}
	if y.log {
		y.low, y.high = math.Inf(1), math.Inf(-1)
	}
	for _, s := range p.Series {
		for _, q := range s.Points {
			if !p.shows(q) {
				continue
			}
			x.low, x.high = min(x.low, q[0]), max(x.high, q[0])
			v := q[1]
			if y.log {
				v = math.Log10(v)
			}
			y.low, y.high = min(y.low, v), max(y.high, v)
		}
	}
	if x.low > x.high { // nothing to show
		x.low, x.high = 0, 1
	}
	if math.IsInf(y.low, 0) {
		y.low, y.high = 0, 1
	}
	if x.high <= x.low {
		x.high = x.low + 1
	}
	if x.ticks = p.XTicks; x.ticks == nil {
		x.ticks = round(x.low, x.high)
	}
	y.fit()
	return x, y
}

// fit moves the ends of a y axis to round numbers and marks those between.
func (a *axis) fit() {
	if !a.log {
		if a.high <= a.low {
			a.high = a.low + 1
		}
		a.ticks = round(a.low, a.high)
		return
	}
	a.low, a.high = math.Floor(a.low), math.Ceil(a.high)
	if a.high <= a.low {
		a.high = a.low + 1
	}
	for e := a.low; e <= a.high; e++ {
		a.ticks = append(a.ticks, Tick{math.Pow(10, e), number(math.Pow(10, e))})
	}
}

// round returns about plotTicks round numbers within a range.
func round(low, high float64) []Tick {
	raw := (high - low) / plotTicks
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range []float64{1, 2, 5, 10} {
		if f*step >= raw {
			step *= f
			break
		}
	}
	var all []Tick
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		all = append(all, Tick{i * step, number(i * step)})
	}
	return all
}

func number(v float64) string {
	if v >= 1000 {
		return Count(v)
	}
	return fmt.Sprintf("%.4g", v)
}
