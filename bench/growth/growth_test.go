package growth

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/report"
	"github.com/zk-lite/zk-lite/bench/system"
)

func lineOf(values ...float64) *line {
	l := &line{Name: "get"}
	x := 1.0
	for _, v := range values {
		l.Figures = append(l.Figures, figure{X: x, PerSecond: v, Syncs: -1, Servers: 0.1})
		x *= 10
	}
	return l
}

// TestCurve_Bend: at the change of slope, nowhere on a straight line, and not at a
// point that has no logarithm.
func TestCurve_Bend(t *testing.T) {
	c := &curve{}
	for _, test := range []struct {
		values []float64
		at     float64 // 0: none
	}{
		{[]float64{10, 100, 1000, 1100, 1200}, 100},
		{[]float64{1000, 1000, 1000, 100, 10}, 100},
		{[]float64{1, 10, 100, 1000}, 0},
		{[]float64{100, 110, 100, 95}, 0},
		{[]float64{10, 100, 0, 1000, 1100}, 10},
		{[]float64{10, 100}, 0},
		{nil, 0},
	} {
		f, before, after, ok := c.bend(lineOf(test.values...))
		if ok != (test.at != 0) || ok && f.X != test.at {
			t.Errorf("%v: %+v %v, slopes %g and %g; want %g", test.values, f, ok, before, after, test.at)
		}
	}
}

func TestGrowth_TextAndPlot(t *testing.T) {
	c := &curve{Title: "<connections>", X: "connections", Lines: []*line{lineOf(10, 100, 1000, 1000), lineOf(0)}}
	times := &curve{Title: "watchers", X: "watchers", Times: true, Lines: []*line{{Name: "event",
		Figures: []figure{{X: 1, P50: time.Millisecond}, {X: 10, P50: time.Second}}}}}
	shares := &curve{Title: "reads", X: "reads, %", Share: true, Lines: []*line{{Name: "3 servers",
		Figures: []figure{{X: 0, PerSecond: 10}, {X: 100, PerSecond: 1000}}}}}
	g := &growth{o: &system.Options{}, site: &system.Site{Output: &report.Output{}}, curves: []*curve{c, times, shares},
		facts: []string{"a fact"}, end: errors.New("interrupted")}
	text := g.text()
	for _, want := range []string{"- a fact\n", "**Not complete** (interrupted)",
		"- get: bends at 100: throughput grows as the power 1.00 of it before and 0.00 after; there the processors are not used up",
		"no bend", "| 0 | 3 servers | 10.0 |", "| 1,000 | get | 1,000 |", "![The curves](0001-01-01-growth.svg)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	file := filepath.Join(t.TempDir(), "plot.svg")
	if err := g.plot(file); err != nil {
		t.Fatal(err)
	}
	svg, _ := os.ReadFile(file)
	if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
		t.Error("a coordinate is not a number")
	}
	if strings.Contains(text, "3 servers: no bend") {
		t.Error("a share has no logarithm, and so no bend")
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
