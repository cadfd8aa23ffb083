package growth

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

// plotFile stands beside the tables.
func (g *growth) plotFile() string { return g.began.UTC().Format(time.DateOnly) + "-growth.svg" }

// text is the section of the document.
func (g *growth) text() string {
	var b strings.Builder
	b.WriteString(g.site.Head(&system.Head{
		Began: g.began, End: g.end,
		How:      fmt.Sprintf("%v a point after %v of warm-up, one round", g.o.Duration, g.o.WarmUp),
		Versions: []string{"zk-lite: " + g.version + ", three servers with their defaults where nothing else is said"},
	}))
	if g.o.Output.Out != "-" {
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
		fmt.Fprintf(&b, "\n| %s | operation | /s | p50 | p99 | p99.9 | CPU: servers, generator (cores) | "+
			"syncs an answer | memory of a server | errors |\n|---|---|---|---|---|---|---|---|---|---|\n", c.X)
		for _, l := range c.Lines {
			for i := range l.Figures {
				b.WriteString(l.Figures[i].row(l.Name))
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

// bends says where a line bends, and what it runs into there.
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

// row is a figure as a row of a table.
func (f *figure) row(name string) string {
	cpu, memory, syncs := "", "", ""
	if f.Servers > 0 {
		cpu, memory = fmt.Sprintf("%.2f, %.2f", f.Servers, f.Generator), report.Bytes(f.Memory)
	}
	if f.Syncs >= 0 {
		syncs = fmt.Sprintf("%.3f", f.Syncs)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %d |\n", whole(f.X), name,
		report.Count(f.PerSecond), report.Time(f.P50), report.Time(f.P99), report.Time(f.P999), cpu, syncs,
		memory, f.Errors)
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
