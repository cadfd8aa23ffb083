package chart

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// Series is one line of a plot.
type Series struct {
	Name   string
	Points [][2]float64 // ascending by the first; all above zero
}

// Plot is a line plot. With logarithmic axes a power of N is a straight line and its
// exponent the slope; with linear ones it looks as it grows.
type Plot struct {
	Title, X, Y string
	Linear      bool
	Series      []Series
}

// Sizes of a plot, in pixels.
const (
	plotWidth  = 760
	plotHeight = 460
	plotLeft   = 70
	plotRight  = 240 // holds the names of the series
	plotTop    = 40
	plotBottom = 50
	plotName   = 15 // least distance of two names
)

// plotColours can be distinguished in print and by most colour-blind readers.
func plotColours() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
		"#7f3c8d", "#8c8c00"}
}

// axis maps values to pixels.
type axis struct {
	low, high float64 // of the values
	from, to  float64 // pixels
	linear    bool
}

func (a axis) scale(v float64) float64 {
	if a.linear {
		return v
	}
	return math.Log10(v)
}

func (a axis) at(v float64) float64 {
	return a.from + (a.scale(v)-a.scale(a.low))/(a.scale(a.high)-a.scale(a.low))*(a.to-a.from)
}

// marks are the values to label: both ends, and round ones between that are not near one.
func (a axis) marks() []float64 {
	marks := []float64{a.low, a.high}
	add := func(v float64) {
		for _, m := range marks {
			if math.Abs(a.at(m)-a.at(v)) < 24 {
				return
			}
		}
		marks = append(marks, v)
	}
	if a.linear {
		step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/2)))
		for v := math.Ceil(a.low/step) * step; v < a.high; v += step {
			add(v)
		}
		return marks
	}
	for d := math.Ceil(math.Log10(a.low)); d <= math.Log10(a.high); d++ {
		add(math.Pow(10, d))
	}
	return marks
}

// SVG writes the plot.
func (p Plot) SVG(w io.Writer) error {
	var b strings.Builder
	x, y := p.axis(0, plotLeft, plotWidth-plotRight), p.axis(1, plotHeight-plotBottom, plotTop)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d" %s font-size="11" role="img" aria-label="%s">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight, svgSource, html.EscapeString(p.Title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14">%s</text>`+"\n",
		plotLeft, html.EscapeString(p.Title))
	for _, v := range x.marks() {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+
			`<text x="%.1f" y="%d" text-anchor="middle">%.4g</text>`+"\n",
			x.at(v), plotTop, x.at(v), plotHeight-plotBottom, x.at(v), plotHeight-plotBottom+16, v)
	}
	for _, v := range y.marks() {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+
			`<text x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n",
			plotLeft, y.at(v), plotWidth-plotRight, y.at(v), plotLeft-6, y.at(v)+4, v)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text><text x="8" y="%d">%s</text>`+"\n",
		(plotLeft+plotWidth-plotRight)/2, plotHeight-12, html.EscapeString(p.X),
		plotTop-12, html.EscapeString(p.Y))
	b.WriteString(p.lines(x, y))
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// end is where a line ends at the right, with its place in the list of lines.
type end struct {
	line int
	y    float64
}

// lines draws the series, each with its name at its end, or as near as the others allow.
func (p Plot) lines(x, y axis) string {
	var b strings.Builder
	var ends []end
	for i, s := range p.Series {
		colour := plotColours()[i%len(plotColours())]
		var points []string
		for _, q := range s.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(q[0]), y.at(q[1])))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n", x.at(q[0]), y.at(q[1]), colour)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n",
			strings.Join(points, " "), colour)
		if len(s.Points) > 0 {
			ends = append(ends, end{i, y.at(s.Points[len(s.Points)-1][1])})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	right := x.at(x.high)
	last := float64(plotTop - plotName)
	for k, e := range ends {
		// Room must be left for those below, down to the axis.
		most := float64(plotHeight - plotBottom - (len(ends)-1-k)*plotName)
		at := min(max(e.y, last+plotName), most)
		last = at
		colour := plotColours()[e.line%len(plotColours())]
		s := p.Series[e.line]
		fmt.Fprintf(&b, `<path d="M%.1f,%.1f L%.1f,%.1f" stroke="%s" fill="none"/>`+
			`<text x="%.1f" y="%.1f" fill="%s">%s (%.0f)</text>`+"\n", right+3, e.y, right+18, at, colour,
			right+21, at+4, colour, html.EscapeString(s.Name), s.Points[len(s.Points)-1][1])
	}
	return b.String()
}

// axis spans the values of the series.
func (p Plot) axis(of int, from, to float64) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), from: from, to: to, linear: p.Linear}
	for _, s := range p.Series {
		for _, q := range s.Points {
			a.low, a.high = min(a.low, q[of]), max(a.high, q[of])
		}
	}
	if p.Linear && of == 1 {
		a.low = 0
	}
	if !(a.high > a.low) {
		a.high = 10 * max(a.low, 1)
	}
	return a
}
