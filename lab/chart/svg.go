package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// Sizes of the picture, in pixels.
const (
	svgMargin = 60
	svgColumn = 150
	svgTop    = 50
	// svgUnit is the height of one time unit, kept between the two bounds so
	// that close instants stay apart and long silences stay short.
	svgUnit   = 44
	svgLeast  = 16
	svgMost   = 60
	svgLine   = 13 // between notes at the same instant and process
	svgSource = `font-family="sans-serif"`
	// MaxDrawn bounds the steps of a picture: more cannot be told apart, and
	// browsers become slow.
	MaxDrawn = 3000
)

// SVG writes the run as a picture: time runs down, to scale where it can, and a
// message is a slanted arrow from its sending to its arrival.
func (r Run) SVG(w io.Writer) error {
	_, err := io.WriteString(w, r.svg(r.drawn()))
	return err
}

// drawn returns the steps of a picture, at most MaxDrawn.
func (r Run) drawn() []step {
	steps := r.steps()
	return steps[:min(len(steps), MaxDrawn)]
}

// place is where notes share room: one process at one instant.
type place struct {
	at time.Duration
	id sim.ID
}

// scale places instants: y grows by the time between neighbours, within bounds,
// and makes room for several notes at one instant.
func scale(steps []step) (y map[time.Duration]int, height int) {
	y = map[time.Duration]int{}
	notes := map[place]int{}
	most := map[time.Duration]int{}
	var instants []time.Duration
	for _, s := range steps {
		for _, t := range []time.Duration{s.sent, s.at} {
			if _, seen := y[t]; !seen && (t == s.at || s.to != sim.None) {
				y[t] = 0
				instants = append(instants, t)
			}
		}
		if s.to == sim.None {
			p := place{s.at, s.from}
			notes[p]++
			most[s.at] = max(most[s.at], notes[p])
		}
	}
	slices.Sort(instants)
	at := svgTop
	for i, t := range instants {
		if i > 0 {
			gap := int(float64(svgUnit) * float64(t-instants[i-1]) / float64(sim.Unit))
			at += min(max(gap, svgLeast), svgMost) + svgLine*max(most[instants[i-1]]-1, 0)
		}
		y[t] = at
	}
	return y, at + svgTop
}

func (r Run) svg(steps []step) string {
	y, height := scale(steps)
	columns := r.columns()
	x := map[sim.ID]int{}
	for i, id := range columns {
		x[id] = svgMargin + svgColumn/2 + i*svgColumn
	}
	width := svgMargin + svgColumn*len(columns) + 2*svgMargin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d" %s font-size="11">`+"\n", width, height, width, height, svgSource)
	b.WriteString(`<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="3" ` +
		`orient="auto"><path d="M0,0 L7,3 L0,6 z" fill="#345"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="8" y="16" font-size="13">%s</text>`+"\n", html.EscapeString(r.Title))
	for _, id := range columns {
		fmt.Fprintf(&b, `<text x="%d" y="36" text-anchor="middle" font-weight="bold">%v</text>`+
			`<line x1="%d" y1="42" x2="%d" y2="%d" stroke="#bbb"/>`+"\n",
			x[id], id, x[id], x[id], height-10)
	}
	b.WriteString(ticks(steps, y))
	line := map[place]int{}
	for i, s := range steps {
		fmt.Fprintf(&b, `<g class="step" data-i="%d">`, i)
		if s.to == sim.None {
			p := place{s.at, s.from}
			b.WriteString(note(s, x[s.from], y[s.at]+svgLine*line[p]))
			line[p]++
		} else {
			b.WriteString(arrow(s, x[s.from], y[s.sent], x[s.to], y[s.at]))
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// ticks writes the times of arrivals and events at the left edge.
func ticks(steps []step, y map[time.Duration]int) string {
	var b strings.Builder
	done := map[time.Duration]bool{}
	for _, s := range steps {
		if !done[s.at] {
			done[s.at] = true
			fmt.Fprintf(&b, `<text x="8" y="%d" fill="#888">%s</text>`+"\n",
				y[s.at]+4, sim.FormatTime(s.at))
		}
	}
	return b.String()
}

func note(s step, x, y int) string {
	colour := map[sim.Kind]string{sim.Crashed: "#c00", sim.Recovered: "#080",
		sim.TimedOut: "#a60", sim.Told: "#06c"}[s.kind]
	if colour == "" {
		colour = "#404"
	}
	return fmt.Sprintf(`<circle cx="%d" cy="%d" r="4" fill="%s"/>`+
		`<text x="%d" y="%d" fill="%s" stroke="white" stroke-width="3" paint-order="stroke">%s</text>`,
		x, y, colour, x+7, y+4, colour, html.EscapeString(s.text))
}

func arrow(s step, x1, y1, x2, y2 int) string {
	style := `stroke="#345" marker-end="url(#head)"`
	if s.kind == sim.Lost {
		style = `stroke="#c00" stroke-dasharray="4 3"`
		x2 = x1 + (x2-x1)*2/3
	}
	if x1 == x2 {
		return fmt.Sprintf(`<path d="M%d,%d C%d,%d %d,%d %d,%d" fill="none" %s/>`,
			x1, y1, x1+40, y1, x1+40, y2, x2, y2, style)
	}
	// The label lies along the arrow, nearer to its head, where the arrows of one
	// sender are apart.
	lx, ly := x1+(x2-x1)*3/5, y1+(y2-y1)*3/5
	angle := math.Atan2(float64(y2-y1), float64(x2-x1)) * 180 / math.Pi
	if x2 < x1 {
		angle += 180 // keep the text upright
	}
	return fmt.Sprintf(`<line x1="%d" y1="%d" x2="%d" y2="%d" %s/>`+
		`<text transform="translate(%d %d) rotate(%.1f)" y="-3" text-anchor="middle" font-size="9" `+
		`fill="#345" stroke="white" stroke-width="2" paint-order="stroke">%s</text>`,
		x1, y1, x2, y2, style, lx, ly, angle, html.EscapeString(s.text))
}
