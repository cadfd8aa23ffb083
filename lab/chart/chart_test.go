package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// sample has every kind of record, and texts that would break careless markup.
func sample(n int) Run {
	r := Run{Title: `a <b> & "c"`, Service: true}
	for i := range n {
		r.Ring = append(r.Ring, sim.ID(i+1))
	}
	last := sim.ID(n)
	u := sim.Unit
	r.Records = []sim.Record{
		{Kind: sim.Told, Process: 1, Peer: sim.None, Label: "starts </script><b>"},
		{Kind: sim.Sent, Process: 1, Peer: last, Label: "hello"},
		{At: u, Kind: sim.Delivered, Process: last, Peer: 1, Label: "hello"},
		{At: 2 * u, SentAt: u, Kind: sim.Lost, Process: last, Peer: 1, Label: "x < y: lost"},
		{At: 2 * u, Kind: sim.Crashed, Process: last, Peer: sim.None},
		{At: 3 * u, Kind: sim.Recovered, Process: last, Peer: sim.None},
		{At: 3 * u, Kind: sim.Delivered, Process: 1, Peer: 1, SentAt: 2 * u, Label: "to itself"},
		{At: 3 * u, Kind: sim.Noted, Process: 1, Peer: sim.None, Fact: sim.Fact{Name: "leader",
			About: 1}},
		{At: 4 * u, Kind: sim.TimedOut, Process: 1, Peer: sim.None, Type: "answer"},
		{At: 5 * u, SentAt: 4 * u, Kind: sim.Delivered, Process: sim.Service, Peer: last,
			Label: strings.Repeat("long ", 60)},
	}
	return r
}

func TestText_Width_Bounded(t *testing.T) {
	for _, n := range []int{2, 5, 12, 40, 300} {
		for _, width := range []int{MinWidth, 72, 100, 200} {
			var b bytes.Buffer
			if err := sample(n).Text(&b, width, 100); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if got := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); got > width {
					t.Errorf("n=%d width %d: line of %d: %q", n, width, got, line)
				}
			}
		}
	}
}

func TestText_Rows_Bounded(t *testing.T) {
	var b bytes.Buffer
	if err := sample(3).Text(&b, 100, 2); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(b.String(), "\n"); lines != 4 || !strings.Contains(b.String(), "more rows") {
		t.Errorf("%d lines, want header, 2 rows and the rest as a number:\n%s", lines, b.String())
	}
	if err := sample(3).Text(&b, MinWidth-1, 2); err == nil {
		t.Error("a width too small is accepted")
	}
}

// wellFormed reads all of an XML document.
func wellFormed(t *testing.T, data []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

func TestSVG_WellFormed_OneStepForEach(t *testing.T) {
	var b bytes.Buffer
	if err := sample(4).SVG(&b); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.Bytes())
	if got := strings.Count(b.String(), `class="step"`); got != 9 {
		t.Errorf("%d steps drawn, want 9: all records but the sending", got)
	}
}

// TestHTML_Inline_NothingFetched: no source, link, import or address but the
// name of the SVG namespace, and data that cannot end the script.
func TestHTML_Inline_NothingFetched(t *testing.T) {
	var b bytes.Buffer
	if err := sample(4).HTML(&b); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(b.String(), "http://www.w3.org/2000/svg", "")
	if bad := regexp.MustCompile(`(?i)https?://|\bsrc=|<link|@import|fetch\(`).FindString(page); bad != "" {
		t.Errorf("the page refers to something outside: %q", bad)
	}
	if strings.Count(page, "</script>") != 1 {
		t.Error("a label of the run ends the script")
	}
}

func TestPlot_SVG_WellFormed(t *testing.T) {
	p := Plot{Title: "a < b", X: "N", Y: "m", Series: []Series{
		{"one", [][2]float64{{4, 10}, {16, 100}}}, {"flat & low", [][2]float64{{4, 1}, {16, 1}}}}}
	var b bytes.Buffer
	if err := p.SVG(&b); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.Bytes())
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Error("a coordinate is not a number")
	}
}
