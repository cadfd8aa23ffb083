package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Series is one line of a plot.
type Series struct {
	Name   string
	Points [][2]float64 // ascending by the first; all above zero
}

// Plot is a line plot with logarithmic axes, on which a power of N is a straight
// line and its exponent the slope.
type Plot struct {
	Title, X, Y string
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

// plotColours are told apart in print and by most colour-blind readers.
func plotColours() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
		"#7f3c8d", "#8c8c00"}
}

// SVG writes the plot.
func (p Plot) SVG(w io.Writer) error {
	var b strings.Builder
	lowX, highX := p.span(0)
	lowY, highY := p.span(1)
	px := func(v float64) float64 {
		return plotLeft + (math.Log10(v)-lowX)/(highX-lowX)*(plotWidth-plotLeft-plotRight)
	}
	py := func(v float64) float64 {
		return plotHeight - plotBottom -
			(math.Log10(v)-lowY)/(highY-lowY)*(plotHeight-plotTop-plotBottom)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d" %s font-size="11">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight, svgSource)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14">%s</text>`+"\n",
		plotLeft, html.EscapeString(p.Title))
	for d := math.Ceil(lowX); d <= highX; d++ {
		x := px(math.Pow(10, d))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+
			`<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n",
			x, plotTop, x, plotHeight-plotBottom, x, plotHeight-plotBottom+16, math.Pow(10, d))
	}
	for d := math.Ceil(lowY); d <= highY; d++ {
		y := py(math.Pow(10, d))
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+
			`<text x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n",
			plotLeft, y, plotWidth-plotRight, y, plotLeft-6, y+4, math.Pow(10, d))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text><text x="8" y="%d">%s</text>`+"\n",
		(plotLeft+plotWidth-plotRight)/2, plotHeight-12, html.EscapeString(p.X),
		plotTop-6, html.EscapeString(p.Y))
	b.WriteString(p.lines(px, py))
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// lines draws the series and their names, each name with its line's colour.
func (p Plot) lines(px, py func(float64) float64) string {
	var b strings.Builder
	for i, s := range p.Series {
		colour := plotColours()[i%len(plotColours())]
		var points []string
		for _, q := range s.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", px(q[0]), py(q[1])))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n",
				px(q[0]), py(q[1]), colour)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n",
			strings.Join(points, " "), colour)
		y := plotTop + 10 + i*plotName
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="3"/>`+
			`<text x="%d" y="%d">%s</text>`+"\n", plotWidth-plotRight+10, y-4,
			plotWidth-plotRight+28, y-4, colour, plotWidth-plotRight+34, y,
			html.EscapeString(s.Name))
	}
	return b.String()
}

// span returns the decimal logarithms between which the axis runs.
func (p Plot) span(axis int) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range p.Series {
		for _, q := range s.Points {
			low = min(low, math.Log10(q[axis]))
			high = max(high, math.Log10(q[axis]))
		}
	}
	if !(high > low) {
		high = low + 1
	}
	return low, high
}
