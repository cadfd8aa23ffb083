package chart

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

func slide(t *testing.T, c election.Config) Run {
	t.Helper()
	c.Keep = true
	r, err := election.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return Run{Ring: r.Ring, Records: r.Records, End: EndOf(r.Records)}
}

// TestSVG_Lost_GoesToTheReceiver: the arrow of a lost message ends on the receiver's line,
// with a cross, and the line of a crashed process has ended there.
func TestSVG_Lost_GoesToTheReceiver(t *testing.T) {
	run := slide(t, election.Config{Algorithm: "bully", IDs: []sim.ID{3, 5, 6, 12, 32, 80},
		Initiators: []election.Initiator{{ID: 6}}, Faults: []sim.Fault{{ID: 80}}})
	var b bytes.Buffer
	if err := run.SVG(&b); err != nil {
		t.Fatal(err)
	}
	const n80 = "885" // the sixth column
	lost := regexp.MustCompile(`x2="(\d+)" y2="\d+" stroke="#c00"`).FindAllStringSubmatch(b.String(), -1)
	if len(lost) != 3 {
		t.Fatalf("%d arrows of lost messages, want 3", len(lost))
	}
	for _, l := range lost {
		if l[1] != n80 {
			t.Errorf("a lost message ends at x=%s, want %s", l[1], n80)
		}
	}
	if got := strings.Count(b.String(), `class="cross"`); got != 4 {
		t.Errorf("%d crosses, want one for the crash and one for each lost message", got)
	}
	line := regexp.MustCompile(`<line x1="885" y1="42" x2="885" y2="(\d+)"`).FindStringSubmatch(b.String())
	if line == nil || line[1] != "50" {
		t.Errorf("the line of N80 ends at %v, want 50, where it crashes", line)
	}
	if strings.Count(b.String(), `class="leads"`) != 1 {
		t.Error("no lane for the leader")
	}
}

// TestSVG_Labels_DoNotLieOnOneAnother, in the pictures that could not be read.
func TestSVG_Labels_DoNotLieOnOneAnother(t *testing.T) {
	lock, err := mutex.Run(mutex.Config{Algorithm: "maekawa", IDs: []sim.ID{1, 2, 3, 4}, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	hs := slide(t, election.Config{Algorithm: "hs", IDs: []sim.ID{6, 1, 2, 5, 3, 4}})
	hs.Round = true
	for name, run := range map[string]Run{"hs": hs,
		"maekawa": {Ring: lock.Ring, Records: lock.Records, End: EndOf(lock.Records)}} {
		p, text := run.picture(run.drawn())
		wellFormed(t, []byte(text))
		if labels := strings.Count(text, `class="label"`); p.full*20 > labels {
			t.Errorf("%s: %d of %d labels found no free place", name, p.full, labels)
		}
		if inside := strings.Count(text, `class="inside"`); name == "maekawa" && inside != 4 {
			t.Errorf("%d bars for the critical section, want 4", inside)
		}
	}
}

// TestPlot_Ends_Labelled: the least and the greatest value of both axes, in both forms.
func TestPlot_Ends_Labelled(t *testing.T) {
	for _, linear := range []bool{false, true} {
		p := Plot{Title: "t", Linear: linear, Series: []Series{{"a", [][2]float64{{4, 7}, {256, 2000}}},
			{"b", [][2]float64{{4, 7}, {256, 1999}}}}}
		var b bytes.Buffer
		if err := p.SVG(&b); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.Bytes())
		for _, want := range []string{">4</text>", ">256</text>", ">2000</text>", "a (2000)", "b (1999)"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("linear %v: no %q", linear, want)
			}
		}
		names := regexp.MustCompile(`y="([\d.]+)" fill="#[0-9a-f]+">[ab] `).FindAllStringSubmatch(b.String(), -1)
		if len(names) != 2 || names[0][1] == names[1][1] {
			t.Errorf("linear %v: the names lie on one another: %v", linear, names)
		}
	}
}
