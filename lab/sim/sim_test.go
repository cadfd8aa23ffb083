package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// note is the message of the test nodes.
type note struct{ text string }

func (n note) Type() string   { return "note" }
func (n note) String() string { return n.text }

// scripted is a node that does at Start what do says and keeps what it hears.
type scripted struct {
	do    func(*Output)
	heard []string
}

func (s scripted) Step(now time.Duration, event Event) (Node, Output) {
	var out Output
	switch e := event.(type) {
	case Start:
		if s.do != nil {
			s.do(&out)
		}
	case Recover:
		s.heard = append(slices.Clone(s.heard), FormatTime(now)+" recovered")
	case Timeout:
		s.heard = append(slices.Clone(s.heard), FormatTime(now)+" "+e.Name)
	case Deliver:
		s.heard = append(slices.Clone(s.heard), FormatTime(now)+" "+e.Message.String())
	}
	return s, out
}

func build(t *testing.T, c Config, nodes ...Node) *Simulator {
	t.Helper()
	var members []Member
	for i, n := range nodes {
		members = append(members, Member{ID: ID(i + 1), Node: n})
	}
	s, err := New(c, members)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func assertHeard(t *testing.T, s *Simulator, id ID, want ...string) {
	t.Helper()
	if got := s.Node(id).(scripted).heard; !slices.Equal(got, want) {
		t.Errorf("%v heard %q, want %q", id, got, want)
	}
}

func talk(texts ...string) scripted {
	return scripted{do: func(o *Output) {
		for _, text := range texts {
			o.Send(2, note{text})
		}
	}}
}

func TestSimulator_Delay_DeliversInOrder(t *testing.T) {
	for seed := range uint64(200) {
		c := Config{Seed: seed, Network: Network{Delay: Delay{Min: Unit / 10, Max: 5 * Unit}}}
		s := build(t, c, talk("a", "b", "c"), scripted{})
		if !s.Run(nil) {
			t.Fatal("the queue did not run empty")
		}
		var order []string
		for _, h := range s.Node(2).(scripted).heard {
			order = append(order, h[strings.Index(h, " ")+1:])
		}
		if !slices.Equal(order, []string{"a", "b", "c"}) {
			t.Fatalf("seed %d: a first-in first-out link delivered %v", seed, order)
		}
	}
}

func TestSimulator_Reorder_Overtakes(t *testing.T) {
	for seed := range uint64(200) {
		c := Config{Seed: seed, Network: Network{Reorder: true, Delay: Delay{Min: Unit / 10,
			Max: 5 * Unit}}}
		s := build(t, c, talk("a", "b"), scripted{})
		s.Run(nil)
		if strings.HasSuffix(s.Node(2).(scripted).heard[0], "b") {
			return
		}
	}
	t.Error("in 200 seeds no message overtook another")
}

func TestSimulator_Script_LosesAndRepeatsOne(t *testing.T) {
	c := Config{Network: Network{Drop: []Nth{{"note", 2}}, Duplicate: []Nth{{"note", 3}}}}
	s := build(t, c, talk("a", "b", "c"), scripted{})
	s.Run(nil)
	assertHeard(t, s, 2, "1 a", "1 c", "1 c")
	if s.Counts()["note"] != 3 || s.LostCount() != 1 {
		t.Errorf("sent %v, lost %d; want 3 sent, 1 lost", s.Counts(), s.LostCount())
	}
}

func TestSimulator_Loss_IsAboutAsAsked(t *testing.T) {
	tier.Seconds(t)
	texts := make([]string, 10_000)
	s := build(t, Config{Seed: 7, Network: Network{Loss: 0.3}}, talk(texts...), scripted{})
	s.Run(nil)
	if lost := s.LostCount(); lost < 2800 || lost > 3200 {
		t.Errorf("lost %d of 10000 at probability 0.3", lost)
	}
}

func TestSimulator_Partition_CutsWhileItLasts(t *testing.T) {
	cut := Partition{From: 2 * Unit, Until: 5 * Unit, Groups: [][]ID{{1}, {2}}}
	sender := scripted{}
	s := build(t, Config{Network: Network{Partitions: []Partition{cut}}}, echo{}, sender)
	for _, at := range []float64{0, 1.5, 3, 4.5, 5} {
		s.Command(time.Duration(at*float64(Unit)), 1, say{FormatTime(time.Duration(at * float64(Unit)))})
	}
	s.Run(nil)
	assertHeard(t, s, 2, "1 0", "6 5") // 1.5 is due in the cut; 3 and 4.5 are sent in it
}

// echo sends each text that it gets to process 2.
type echo struct{}

type say struct{ text string }

func (echo) Step(_ time.Duration, event Event) (Node, Output) {
	var out Output
	if s, ok := event.(say); ok {
		out.Send(2, note(s))
	}
	return echo{}, out
}

func TestSimulator_Crash_LosesMessagesAndTimers(t *testing.T) {
	sleeper := scripted{do: func(o *Output) { o.SetTimer("alarm", 3*Unit) }}
	c := Config{Faults: []Fault{{ID: 2, At: Unit / 2}, {ID: 2, At: 2 * Unit, Recover: true}}}
	s := build(t, c, talk("a"), sleeper)
	s.Command(3*Unit, 1, say{"ignored by scripted"})
	s.Run(nil)
	assertHeard(t, s, 2, "2 recovered")
	if s.LostCount() != 1 {
		t.Errorf("lost %d messages, want the one to the crashed process", s.LostCount())
	}
}

func TestSimulator_Timers_ReplaceAndCancel(t *testing.T) {
	node := scripted{do: func(o *Output) {
		o.SetTimer("replaced", Unit)
		o.SetTimer("replaced", 4*Unit)
		o.SetTimer("cancelled", 2*Unit)
		o.CancelTimer("cancelled")
		o.SetTimer("kept", 3*Unit)
	}}
	s := build(t, Config{}, node)
	s.Run(nil)
	assertHeard(t, s, 1, "3 kept", "4 replaced")
}

// TestSimulator_SameInstant_MessageBeforeTimer is the rule that lets a timeout be
// exactly two message times.
func TestSimulator_SameInstant_MessageBeforeTimer(t *testing.T) {
	waiter := scripted{do: func(o *Output) { o.SetTimer("timeout", Unit) }}
	s := build(t, Config{}, talk("a"), waiter)
	s.Run(nil)
	assertHeard(t, s, 2, "1 a", "1 timeout")
}

func TestSimulator_Ring_SkipsTheDead(t *testing.T) {
	sender := scripted{do: func(o *Output) {
		o.SendRing(Clockwise, note{"cw"})
		o.SendRing(CounterClockwise, note{"ccw"})
	}}
	faults := []Fault{{ID: 2}, {ID: 4}}
	s := build(t, Config{Faults: faults}, sender, scripted{}, scripted{}, scripted{})
	s.Run(nil)
	assertHeard(t, s, 3, "1 cw", "1 ccw")
	static := build(t, Config{Faults: faults, Network: Network{StaticRing: true}},
		sender, scripted{}, scripted{}, scripted{})
	static.Run(nil)
	assertHeard(t, static, 3)
	if static.LostCount() != 2 {
		t.Errorf("a static ring lost %d messages, want 2", static.LostCount())
	}
}

func TestSimulator_SameSeed_SameRecords(t *testing.T) {
	run := func(seed uint64) []Record {
		c := Config{Seed: seed, Keep: true, Network: Network{Loss: 0.2, Duplication: 0.2,
			Delay: Delay{Min: Unit / 10, Max: 3 * Unit}}}
		s := build(t, c, talk("a", "b", "c", "d", "e", "f"), scripted{})
		s.Run(nil)
		records, _ := s.Records()
		return records
	}
	if !reflect.DeepEqual(run(5), run(5)) {
		t.Error("one seed gave two different runs")
	}
	if reflect.DeepEqual(run(5), run(6)) {
		t.Error("two seeds gave the same run: the seed is not used")
	}
}

// impure counts its steps behind its own back.
type impure struct{ count *int }

func (i impure) Step(time.Duration, Event) (Node, Output) {
	*i.count++
	var out Output
	out.Note("count", None, *i.count)
	return i, out
}

func TestSimulator_CheckPure_CatchesImpureStep(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "not a pure function") {
			t.Errorf("recovered %v, want the complaint about purity", r)
		}
	}()
	build(t, Config{CheckPure: true}, impure{new(int)}).Run(nil)
}

func TestSimulator_MaxEvents_EndsAnEndlessRun(t *testing.T) {
	loop := endless{}
	s := build(t, Config{MaxEvents: 100}, loop)
	if s.Run(nil) {
		t.Error("an endless run ended by itself")
	}
}

// endless sets a timer forever.
type endless struct{}

func (endless) Step(time.Duration, Event) (Node, Output) {
	var out Output
	out.SetTimer("again", Unit)
	return endless{}, out
}

func TestNew_Errors(t *testing.T) {
	two := []Member{{1, scripted{}}, {2, scripted{}}}
	for name, c := range map[string]struct {
		config  Config
		members []Member
	}{
		"no process":        {},
		"a process twice":   {members: []Member{{1, scripted{}}, {1, scripted{}}}},
		"unknown crash":     {Config{Faults: []Fault{{ID: 9}}}, two},
		"unknown slow link": {Config{Network: Network{Slow: []SlowLink{{1, 9, Unit}}}}, two},
		"unknown group": {Config{Network: Network{Partitions: []Partition{{Groups: [][]ID{{9}}}}}},
			two},
		"loss above one": {Config{Network: Network{Loss: 1.1}}, two},
		"delay reversed": {Config{Network: Network{Delay: Delay{Min: 2 * Unit, Max: Unit}}}, two},
	} {
		if _, err := New(c.config, c.members); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
