package explore

import (
	"fmt"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/lab/election"
	"github.com/zk-lite/zk-lite/lab/mutex"
	"github.com/zk-lite/zk-lite/lab/sim"
)

func upTo(n int) (ids []sim.ID) {
	for i := range n {
		ids = append(ids, sim.ID(i+1))
	}
	return ids
}

// show writes what was found as kind@steps.
func show(r Result) string {
	text := ""
	for _, f := range r.Found {
		text += fmt.Sprintf("%s@%d ", f.Kind, f.Steps)
	}
	return text
}

// TestSearch_All holds the algorithms to what they promise in every order there is, and
// finds what breaks them, by the shortest run.
func TestSearch_All(t *testing.T) {
	tier.Seconds(t)
	lock := func(name string, n int) *mutex.Config { return &mutex.Config{Algorithm: name, IDs: upTo(n)} }
	elect := func(name string, n int) *election.Config { return &election.Config{Algorithm: name, IDs: upTo(n)} }
	plain := lock("maekawa", 3)
	plain.Plain = true
	two := lock("lamport", 3)
	two.Requesters = upTo(2)
	unrepaired := elect("ring", 3)
	unrepaired.Detector = election.DetectorNone
	participants := elect("ring", 4)
	participants.Participants = true
	participants.Initiators = []election.Initiator{{ID: 1}, {ID: 3}}
	for name, c := range map[string]struct {
		config Config
		found  string
	}{
		"maekawa, plain":       {Config{Mutex: plain}, "deadlock@7 "},
		"maekawa":              {Config{Mutex: lock("maekawa", 3)}, ""},
		"lamport":              {Config{Mutex: two}, ""},
		"lamport, not FIFO":    {Config{Mutex: lock("lamport", 2), Reorder: true}, "two-inside@4 "},
		"ricart-agrawala":      {Config{Mutex: lock("ricart-agrawala", 3)}, ""},
		"the same, a loss":     {Config{Mutex: lock("ricart-agrawala", 2), Losses: 1}, "deadlock@4 "},
		"central":              {Config{Mutex: lock("central", 3)}, ""},
		"token ring":           {Config{Mutex: lock("token-ring", 4)}, ""},
		"the same, a crash":    {Config{Mutex: lock("token-ring", 4), Crashes: 1}, "deadlock@6 "},
		"bully, timely":        {Config{Election: elect("bully", 3), Timely: true}, ""},
		"bully, timely, crash": {Config{Election: elect("bully", 3), Timely: true, Crashes: 1}, ""},
		"ring":                 {Config{Election: elect("ring", 4)}, ""},
		"ring, participants":   {Config{Election: participants}, ""},
		"ring, crash":          {Config{Election: elect("ring", 3), Timely: true, Crashes: 1}, ""},
		"ring, not repaired":   {Config{Election: unrepaired, Crashes: 1}, "no-leader@3 endless@4 disagree@10 "},
		"lcr, a crash":         {Config{Election: elect("lcr", 3), Crashes: 1}, "endless@4 no-leader@7 disagree@12 "},
		"drawn":                {Config{Election: elect("zookeeper-drawn", 3), Timely: true, Crashes: 1}, ""},
		"drawn, the gap":       {Config{Election: elect("zookeeper-drawn", 3), Timely: true, Crashes: 2}, "endless@2 "},
		"lcr":                  {Config{Election: elect("lcr", 4)}, ""},
		"hs":                   {Config{Election: elect("hs", 4)}, ""},
		"broadcast":            {Config{Election: elect("broadcast", 3)}, "two-leaders@4 disagree@10 "},
		"broadcast, timely":    {Config{Election: elect("broadcast", 3), Timely: true}, ""},
		"broadcast, a loss":    {Config{Election: elect("broadcast", 3), Timely: true, Losses: 1}, "two-leaders@8 disagree@10 "},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Search(c.config)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(r); got != c.found || !r.Complete {
				t.Errorf("found %q, complete %v, want %q: %+v", got, r.Complete, c.found, r.Found)
			}
			if len(r.Found) > 0 && len(r.Violations) == 0 {
				t.Error("the run drawn is not said to break anything")
			}
		})
	}
}

// TestSearch_Find_StopsAtTheShortest: two coordinators, as soon as a timer may run out early.
func TestSearch_Find_StopsAtTheShortest(t *testing.T) {
	r, err := Search(Config{Election: &election.Config{Algorithm: "bully", IDs: upTo(3)}, Find: TwoLeaders})
	if err != nil {
		t.Fatal(err)
	}
	if show(r) != "two-leaders@4 " || r.Complete || *r.Time != 4 {
		t.Errorf("%s complete %v, drawn to %v", show(r), r.Complete, *r.Time)
	}
	leads := map[sim.ID]bool{}
	for _, record := range r.Records {
		if record.Kind == sim.Noted && record.Fact.Name == election.FactLeader {
			leads[record.Process] = record.Fact.About == record.Process
		}
	}
	count := 0
	for _, yes := range leads {
		if yes {
			count++
		}
	}
	if count != 2 {
		t.Errorf("%d processes lead at the end of the run drawn: %v", count, leads)
	}
}

// TestSearch_Majority_NeverTwoInATerm goes as far as the states allow: terms have no end.
func TestSearch_Majority_NeverTwoInATerm(t *testing.T) {
	r, err := Search(Config{Election: &election.Config{Algorithm: "majority", IDs: upTo(3)}, Crashes: 1, Losses: 1, States: 20_000})
	if err != nil || len(r.Found) > 0 || r.Complete || r.States != 20_000 {
		t.Errorf("%d states, complete %v, %+v, %v", r.States, r.Complete, r.Found, err)
	}
}

func TestWorst_Known(t *testing.T) {
	tier.Seconds(t)
	for _, c := range []struct {
		algorithm string
		n, want   int
		all       bool
	}{{"hs", 6, 74, true}, {"hs", 8, 97, true}, {"hs", 9, 143, true}, {"hs", 16, 258, false}, {"lcr", 6, 27, true},
		{"lcr", 7, 35, true}, {"lcr", 12, 90, false}} {
		a, err := Worst(election.Config{Algorithm: c.algorithm, Seed: 1}, c.n)
		if err != nil {
			t.Fatal(err)
		}
		if a.Messages != c.want || a.All != c.all {
			t.Errorf("%s of %d: %+v, want %d", c.algorithm, c.n, a, c.want)
		}
	}
	a, err := Worst(election.Config{Algorithm: "ring", Initiators: []election.Initiator{{ID: 1}}, Seed: 1}, 6)
	if err != nil || a.Messages != 17 {
		t.Errorf("ring: %+v, %v, want 3N-1 = 17", a, err)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]Config{
		"nothing":    {},
		"zookeeper":  {Election: &election.Config{Algorithm: "zookeeper", IDs: upTo(3)}},
		"lock":       {Mutex: &mutex.Config{Algorithm: "zookeeper", IDs: upTo(3)}},
		"many":       {Mutex: &mutex.Config{Algorithm: "lamport", IDs: upTo(9)}},
		"wrong find": {Mutex: &mutex.Config{Algorithm: "lamport", IDs: upTo(3)}, Find: TwoLeaders},
		"later crash": {Election: &election.Config{Algorithm: "bully", IDs: upTo(3),
			Faults: []sim.Fault{{ID: 1, At: sim.Unit}}}},
		"losses": {Mutex: &mutex.Config{Algorithm: "lamport", IDs: upTo(3)}, Losses: -1},
	} {
		if _, err := Search(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, c := range []election.Config{{Algorithm: "bully"}, {Algorithm: "none"}, {Algorithm: "anonymous"}} {
		if _, err := Worst(c, 4); err == nil {
			t.Errorf("%s has a worst arrangement", c.Algorithm)
		}
	}
	if _, err := Worst(election.Config{Algorithm: "lcr"}, MaxWorst+1); err == nil {
		t.Error("a ring above MaxWorst was searched")
	}
}
