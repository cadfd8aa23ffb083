package growth

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// figure is the result at one point of a line.
type figure struct {
	X         float64       `json:"x"`
	PerSecond float64       `json:"per_second"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	P999      time.Duration `json:"p99_9_ns"`
	Servers   float64       `json:"servers_cores"`   // CPU of all, in cores
	Generator float64       `json:"generator_cores"` // CPU of this process
	Memory    int64         `json:"memory_bytes"`    // resident, of the largest server
	Syncs     float64       `json:"syncs"`           // of all servers, an answer; below 0: not counted
	Errors    uint64        `json:"errors"`
}

func figureOf(x float64, r *load.Result, o *load.OpResult) figure {
	f := figure{X: x, PerSecond: o.PerSecond, P50: o.Latency.P50.Duration(),
		P99: o.Latency.P99.Duration(), P999: o.Latency.P999.Duration(), Servers: r.CPUShare(), Syncs: -1,
		Generator: r.Generator.Seconds() / r.Elapsed.Seconds(), Errors: r.Unanswered + uint64(r.Dropped)}
	for _, p := range r.Servers {
		f.Memory = max(f.Memory, p.RSS)
	}
	for _, n := range o.Errors {
		f.Errors += n
	}
	return f
}

// line is one operation of a curve.
type line struct {
	Name    string   `json:"name"`
	Figures []figure `json:"figures"`
}

// curve is a growing quantity, and its effect on some operations.
type curve struct {
	ID    string  `json:"id"`
	Title string  `json:"title"`
	X     string  `json:"x"`     // the growing quantity
	Times bool    `json:"times"` // latency matters, not throughput
	Share bool    `json:"share"` // x is a share in percent; a line is all operations of an ensemble
	Lines []*line `json:"lines"`
}

func (c *curve) line(name string) *line {
	i := slices.IndexFunc(c.Lines, func(l *line) bool { return l.Name == name })
	if i < 0 {
		i = len(c.Lines)
		c.Lines = append(c.Lines, &line{Name: name})
	}
	return c.Lines[i]
}

// value is the plotted value of a figure: answers per second, or milliseconds.
func (c *curve) value(f *figure) float64 {
	if c.Times {
		return float64(f.P50) / float64(time.Millisecond)
	}
	return f.PerSecond
}

// leastBend is how much the slope of a curve must change to count as a bend: half an order of
// magnitude per order of magnitude.
const leastBend = 0.5

// bend is the point at which a line's slope, with both axes logarithmic, changes the
// most, and the slopes before and after; false if it changes by less than leastBend.
// The slope is 1 where the value grows as x does, 0 where it does not depend on it.
func (c *curve) bend(l *line) (at *figure, before, after float64, ok bool) {
	var all []*figure // those that have a logarithm
	for i := range l.Figures {
		if c.value(&l.Figures[i]) > 0 {
			all = append(all, &l.Figures[i])
		}
	}
	slope := func(i int) float64 {
		a, b := all[i], all[i+1]
		return math.Log(c.value(b)/c.value(a)) / math.Log(b.X/a.X)
	}
	most := leastBend
	for i := 1; i+1 < len(all); i++ {
		was, is := slope(i-1), slope(i)
		if change := math.Abs(is - was); change >= most {
			most, at, before, after, ok = change, all[i], was, is, true
		}
	}
	return at, before, after, ok
}

// full is the share of all processors that counts as all of them.
const full = 0.9

// bound returns what limits a point, judged by its measurements.
func (f *figure) bound() string {
	cores := float64(runtime.NumCPU())
	switch {
	case f.Servers+f.Generator >= full*cores:
		return "the processors are used up"
	case f.Syncs > 0:
		return "the processors are not used up: requests wait for the disk and for one another"
	}
	return "the processors are not used up: requests wait for one another"
}

// plotFile is written beside the tables.
func (g *growth) plotFile() string { return g.began.UTC().Format(time.DateOnly) + "-growth.svg" }

// text is the section of the document.
func (g *growth) text() string {
	var b strings.Builder
	b.WriteString(g.site.Head(&system.Head{
		Began: g.began, End: g.end,
		How: fmt.Sprintf("%v a point after %v of warm-up, one round", g.o.Duration, g.o.WarmUp),
		Versions: append([]string{g.name() + ": " + g.version +
			", three servers with their defaults where nothing else is said"},
			g.o.Conditions()...),
	}))
	if g.site.Output.Out != "-" {
		fmt.Fprintf(&b, "![The curves](%s)\n\n", g.plotFile())
	}
	for _, fact := range g.facts {
		fmt.Fprintf(&b, "- %s\n", fact)
	}
	for _, trouble := range g.troubles {
		fmt.Fprintf(&b, "- %s\n", trouble)
	}
	for _, c := range g.curves {
		fmt.Fprintf(&b, "\n### Grows: %s\n\n", c.Title)
		for _, l := range c.Lines {
			if !c.Share {
				fmt.Fprintf(&b, "- %s: %s\n", l.Name, c.bends(l))
			}
		}
		t := report.NewTable(c.X, "operation", "/s", "p50", "p99", "p99.9", "CPU: servers, generator (cores)",
			"syncs an answer", "memory of a server", "errors")
		for _, l := range c.Lines {
			for i := range l.Figures {
				t.Row(l.Figures[i].row(l.Name)...)
			}
		}
		fmt.Fprintf(&b, "\n%s", t)
	}
	b.WriteString("\n")
	return b.String()
}

// bends returns where a line bends, and what limits it there.
func (c *curve) bends(l *line) string {
	f, before, after, ok := c.bend(l)
	if !ok {
		return fmt.Sprintf("no bend (its slope changes by less than %g)", leastBend)
	}
	what := "throughput"
	if c.Times {
		what = "p50"
	}
	text := fmt.Sprintf("bends at %s: %s grows as the power %.2f of it before and %.2f after",
		whole(f.X), what, before, after)
	if f.Servers > 0 {
		text += "; there " + f.bound() + fmt.Sprintf(" (servers %.2f cores, generator %.2f)", f.Servers, f.Generator)
	}
	return text
}

// row has the cells of a figure.
func (f *figure) row(name string) []any {
	cpu, memory, syncs := "", "", ""
	if f.Servers > 0 {
		cpu, memory = fmt.Sprintf("%.2f, %.2f", f.Servers, f.Generator), report.Bytes(f.Memory)
	}
	if f.Syncs >= 0 {
		syncs = fmt.Sprintf("%.3f", f.Syncs)
	}
	return []any{whole(f.X), name, report.Count(f.PerSecond), report.Time(f.P50), report.Time(f.P99),
		report.Time(f.P999), cpu, syncs, memory, f.Errors}
}

// whole writes a whole number, which has no digits to round.
func whole(v float64) string {
	if v < 1000 {
		return fmt.Sprint(v)
	}
	return report.Count(v)
}

// plot writes all curves as one picture.
func (g *growth) plot(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing the plots: %w", err)
	}
	var plots []*report.Plot
	for _, c := range g.curves {
		plots = append(plots, c.plot())
	}
	return errors.Join(report.PlotsSVG(f, plots), f.Close())
}

// plot has logarithmic axes, but for a share.
func (c *curve) plot() *report.Plot {
	p := &report.Plot{Title: c.Title, X: c.X, Y: "answers a second", LogY: !c.Share}
	if c.Times {
		p.Y = "ms (p50)"
	}
	ticks := map[float64]bool{}
	for _, l := range c.Lines {
		s := report.Series{Name: l.Name}
		for i := range l.Figures {
			x := l.Figures[i].X
			if !c.Share {
				x = math.Log10(x)
			}
			s.Points = append(s.Points, [2]float64{x, c.value(&l.Figures[i])})
			if !ticks[x] {
				ticks[x] = true
				p.XTicks = append(p.XTicks, report.Tick{At: x, Text: whole(l.Figures[i].X)})
			}
		}
		p.Series = append(p.Series, s)
	}
	return p
}
