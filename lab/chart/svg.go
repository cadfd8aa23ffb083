package chart

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
	"github.com/zk-lite/zk-lite/lab/trace"
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
	svgCrowd  = 260 // where many labels want room
	svgLine   = 13  // between notes at the same instant and process
	svgSource = `font-family="sans-serif"`
	// MaxDrawn bounds the steps of a picture: more cannot be distinguished, and browsers become
	// slow.
	MaxDrawn = 3000
)

// SVG writes the run as a picture: time runs down, to scale where it can, and a
// message is a slanted arrow from its sending to its arrival, or to where it would
// have arrived. Spans in which a process leads or is inside are bars on its line, which
// has a gap while it is down.
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

// ends returns when an arrow ends: lost messages go to where they would have arrived.
func (s step) ends() time.Duration { return max(s.at, s.due) }

// scale places instants: y grows by the time between neighbours, within bounds,
// and makes room for several notes at one instant, and for the labels of the arrows
// that end there.
func scale(steps []step) (y map[time.Duration]int, height int) {
	y = map[time.Duration]int{}
	notes, labels := map[place]int{}, map[time.Duration]int{}
	most := map[time.Duration]int{}
	var instants []time.Duration
	add := func(t time.Duration) {
		if _, seen := y[t]; !seen {
			y[t] = 0
			instants = append(instants, t)
		}
	}
	for _, s := range steps {
		if s.to != sim.None {
			add(s.sent)
			add(s.ends())
			labels[s.ends()]++
			continue
		}
		add(s.at)
		p := place{s.at, s.from}
		notes[p]++
		most[s.at] = max(most[s.at], notes[p])
	}
	slices.Sort(instants)
	at := svgTop
	for i, t := range instants {
		if i > 0 {
			gap := int(float64(svgUnit) * float64(t-instants[i-1]) / float64(sim.Unit))
			room := min(max(gap, svgLeast), svgMost)
			at += max(room, min(labels[t]*7, svgCrowd)) + svgLine*max(most[instants[i-1]]-1, 0)
		}
		y[t] = at
	}
	return y, at + svgTop
}

// picture is shared by the parts of a picture.
type picture struct {
	run    Run
	x      map[sim.ID]int
	y      map[time.Duration]int
	width  int
	bottom int
	boxes  []box // where there is text already
	full   int   // labels for which there was no free place
}

func (r Run) svg(steps []step) string {
	_, text := r.picture(steps)
	return text
}

func (r Run) picture(steps []step) (*picture, string) {
	y, height := scale(steps)
	columns := r.columns()
	p := &picture{run: r, x: map[sim.ID]int{}, y: y, width: svgMargin + svgColumn*len(columns) + 2*svgMargin,
		bottom: height - 10}
	for i, id := range columns {
		p.x[id] = svgMargin + svgColumn/2 + i*svgColumn
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d" %s font-size="11" role="img" aria-label="%s">`+"\n",
		p.width, height, p.width, height, svgSource, html.EscapeString(r.Title))
	b.WriteString(`<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="3" ` +
		`orient="auto"><path d="M0,0 L7,3 L0,6 z" fill="#345"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", p.width, height)
	fmt.Fprintf(&b, `<text x="8" y="16" font-size="13">%s</text>`+"\n", html.EscapeString(r.Title))
	b.WriteString(p.lifelines(columns))
	b.WriteString(ticks(steps, y))
	line := map[place]int{}
	drawn := make([]string, len(steps))
	for i, s := range steps { // notes first: labels of arrows make way for them
		if s.to == sim.None {
			at := place{s.at, s.from}
			drawn[i] = p.note(s, y[s.at]+svgLine*line[at])
			line[at]++
		}
	}
	for i, s := range steps {
		if s.to != sim.None {
			drawn[i] = p.arrow(s)
		}
		fmt.Fprintf(&b, `<g class="step" data-i="%d">%s</g>`+"\n", i, drawn[i])
	}
	b.WriteString("</svg>\n")
	return p, b.String()
}

// at returns the height of a moment that need not be one of those drawn.
func (p *picture) at(t time.Duration) int {
	before, found := svgTop, time.Duration(-1)
	for instant, y := range p.y {
		if instant <= t && instant > found {
			before, found = y, instant
		}
	}
	return before
}

// lifelines draws the processes' lines, which end at a crash and continue at a recovery, and
// their status in between: a wide bar inside the critical section, a lane for a leader.
func (p *picture) lifelines(columns []sim.ID) string {
	var b strings.Builder
	spans := trace.Spans(p.run.Records, p.run.End)
	for _, id := range columns {
		x, from := p.x[id], 42
		fmt.Fprintf(&b, `<text x="%d" y="36" text-anchor="middle" font-weight="bold">%v</text>`, x, id)
		for _, s := range spans {
			if s.Process != id {
				continue
			}
			begin, end := p.at(moment(s.From)), p.at(moment(s.Until))
			if s.Open {
				end = p.bottom
			}
			bar := func(left, width int, colour string) {
				fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" fill="%s" fill-opacity=".45"/>`,
					s.What, x-left, begin, width, max(end-begin, 3), colour)
			}
			switch s.What {
			case trace.Down:
				fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#bbb"/>`, x, from, x, begin)
				from = end
			case trace.Inside:
				bar(5, 10, "#d55e00")
			case trace.Asks:
				bar(2, 4, "#e69f00")
			case trace.Leads:
				bar(9, 5, "#0072b2")
			}
		}
		if from < p.bottom {
			fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#bbb"/>`, x, from, x, p.bottom)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// moment is the virtual time of this many units.
func moment(units float64) time.Duration { return time.Duration(units*1000) * (sim.Unit / 1000) }

// ticks writes the times of arrivals and events at the left edge.
func ticks(steps []step, y map[time.Duration]int) string {
	var b strings.Builder
	done := map[time.Duration]bool{}
	last := -100
	instants := []time.Duration{}
	for _, s := range steps {
		if !done[s.at] {
			done[s.at] = true
			instants = append(instants, s.at)
		}
	}
	slices.Sort(instants)
	for _, t := range instants {
		if y[t]-last >= 11 { // or they lie on one another
			last = y[t]
			fmt.Fprintf(&b, `<text x="8" y="%d" fill="#666">%s</text>`+"\n", y[t]+4, sim.FormatTime(t))
		}
	}
	return b.String()
}

func (p *picture) note(s step, y int) string {
	x := p.x[s.from]
	colour := map[sim.Kind]string{sim.Crashed: "#c00", sim.Recovered: "#060",
		sim.TimedOut: "#840", sim.Told: "#05a", sim.Changed: "#555"}[s.kind]
	if colour == "" {
		colour = "#404"
	}
	mark := fmt.Sprintf(`<circle cx="%d" cy="%d" r="4" fill="%s"/>`, x, y, colour)
	if s.kind == sim.Crashed {
		mark = cross(x, y, colour)
	}
	b := box{x + 5, y - 6, textWidth(s.text, 11), 11}
	for range 3 { // below the neighbour's note, if that reaches as far as here
		if p.meets([]box{b}) == 0 {
			break
		}
		b.y += svgLine
	}
	p.boxes = append(p.boxes, b)
	return fmt.Sprintf(`%s<text x="%d" y="%d" fill="%s" stroke="white" stroke-width="3" paint-order="stroke">%s</text>`,
		mark, x+7, b.y+10, colour, html.EscapeString(s.text))
}

func cross(x, y int, colour string) string {
	return fmt.Sprintf(`<path class="cross" d="M%d,%d l10,10 m0,-10 l-10,10" stroke="%s" stroke-width="2"/>`,
		x-5, y-5, colour)
}
