package election

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// slides is the lectures' set of processes, in the ring's order.
func slides() []sim.ID { return []sim.ID{3, 32, 5, 80, 6, 12} }

func at(t float64) time.Duration { return time.Duration(t * float64(sim.Unit)) }

func assertOutcome(t *testing.T, r Result, safe, live bool, leader sim.ID) {
	t.Helper()
	if r.Safe != safe || r.Live != live || leaderOf(r) != leader {
		t.Errorf("safe %v live %v leader %v, want %v %v %v; ended %s %v",
			r.Safe, r.Live, leaderOf(r), safe, live, leader, r.Ended, r.Violations)
	}
}

func TestBully_TimeoutBelowTwoMessageTimes_BreaksSafety(t *testing.T) {
	c := Config{Algorithm: "bully", IDs: slides(), Initiators: from(6), AnswerTimeout: at(1.5)}
	assertOutcome(t, mustRun(t, c), false, true, 80)
	c.AnswerTimeout = at(2)
	assertOutcome(t, mustRun(t, c), true, true, 80)
}

// TestBully_TimeoutSweep_BreaksBelowTwo runs many seeds with random delays: a
// timeout of the bound for a question and its answer never errs, a shorter one
// does for some.
func TestBully_TimeoutSweep_BreaksBelowTwo(t *testing.T) {
	for _, c := range []struct {
		timeout float64
		breaks  bool
	}{{1.2, true}, {1.6, true}, {2, false}, {3, false}} {
		broken := 0
		for seed := uint64(1); seed <= 500; seed++ {
			r := mustRun(t, Config{Algorithm: "bully", IDs: slides(), Initiators: from(6),
				Seed: seed, AnswerTimeout: at(c.timeout),
				Network: sim.Network{Delay: sim.Delay{Min: at(0.5), Max: at(1)}}})
			if !r.Safe {
				broken++
			}
		}
		if (broken > 0) != c.breaks {
			t.Errorf("timeout %v: %d of 500 seeds break safety, want some: %v",
				c.timeout, broken, c.breaks)
		}
	}
}

func TestBully_FailureDuringRun_NextHighestLeads(t *testing.T) {
	r := mustRun(t, Config{Algorithm: "bully", IDs: slides(), Initiators: from(6),
		Detector: DetectorNone,
		Faults:   []sim.Fault{{ID: 80}, {ID: 32, At: at(3.5)}}})
	assertOutcome(t, r, true, true, 12)
	if *r.Time <= 5 {
		t.Errorf("time %v: the processes must have waited in vain for a coordinator", r.Time)
	}
}

func TestBully_Recovery_BulliesThePresentLeader(t *testing.T) {
	c := Config{Algorithm: "bully", IDs: slides(), Initiators: from(6),
		Faults: []sim.Fault{{ID: 80}}}
	assertOutcome(t, mustRun(t, c), true, true, 32)
	c.Faults = append(c.Faults, sim.Fault{ID: 80, At: at(12), Recover: true})
	r := mustRun(t, c)
	assertOutcome(t, r, true, true, 80)
	if r.Declared != 2 {
		t.Errorf("%d declarations, want N32's and N80's", r.Declared)
	}
}

func TestRing_WouldBeLeaderFails_EachRepair(t *testing.T) {
	one := []sim.Fault{{ID: 80, At: at(4.5)}}
	two := append([]sim.Fault{{ID: 5, At: at(10)}}, one...)
	for _, c := range []struct {
		name     string
		detector Detector
		faults   []sim.Fault
		live     bool
		leader   sim.ID
	}{
		{"no repair: the message goes round for ever", DetectorNone, one, false, sim.None},
		{"the neighbour times out", DetectorNeighbour, one, true, 32},
		{"the neighbour fails as well", DetectorNeighbour, two, false, sim.None},
		{"the detector tells", DetectorPerfect, one, true, 32},
		{"the detector tells of both", DetectorPerfect, two, true, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustRun(t, Config{Algorithm: "ring", IDs: slides(), Initiators: from(3),
				Detector: c.detector, Faults: c.faults})
			assertOutcome(t, r, true, c.live, c.leader)
		})
	}
}

// TestRing_LeaderMissedByDetector_BreaksSafety: the lectures' consequence of an
// incomplete detector, a crashed leader held by the living.
func TestRing_LeaderMissedByDetector_BreaksSafety(t *testing.T) {
	r := mustRun(t, Config{Algorithm: "ring", IDs: slides(), Initiators: from(3),
		Detector: DetectorNone, Faults: []sim.Fault{{ID: 80, At: at(30)}}})
	assertOutcome(t, r, false, true, sim.None)
	if !strings.Contains(fmt.Sprint(r.Violations), "is down") {
		t.Errorf("violations %v do not name the crashed leader", r.Violations)
	}
}

func TestRing_InaccurateDetector_NeverEnds(t *testing.T) {
	lossy := sim.Network{Loss: 0.2}
	beat := detector.Timing{Period: at(2), Timeout: at(2)}
	c := Config{Algorithm: "ring", IDs: slides(), Detector: DetectorHeartbeat, Heartbeat: beat,
		Network: lossy, Seed: 1}
	if r := mustRun(t, c); r.Live {
		t.Errorf("live under an inaccurate detector: %+v", r)
	}
	c.Network.Loss = 0
	assertOutcome(t, mustRun(t, c), true, true, 80)
	c.Algorithm, c.Network.Loss = "bully", 0.2
	if r := mustRun(t, c); r.Safe {
		t.Errorf("bully safe under an inaccurate detector: %+v", r)
	}
}

// TestRing_SeveralInitiators_OneRunCompletes checks suppression for every set of initiators:
// one leader, declared once, no matter who starts.
func TestRing_SeveralInitiators_OneRunCompletes(t *testing.T) {
	ids := slides()
	for set := 1; set < 1<<len(ids); set++ {
		var initiators []sim.ID
		for i, id := range ids {
			if set&(1<<i) != 0 {
				initiators = append(initiators, id)
			}
		}
		r := mustRun(t, Config{Algorithm: "ring", IDs: ids, Initiators: from(initiators...), CheckPure: true})
		if !r.Safe || !r.Live || leaderOf(r) != 80 || r.Declared != 1 ||
			r.Messages.ByType["elected"] != 6 {
			t.Errorf("initiators %v: %+v", initiators, r)
		}
	}
}

func TestRing_Attribute_BestAttributeLeads(t *testing.T) {
	r := mustRun(t, Config{Algorithm: "ring", IDs: slides(), Attributes: map[sim.ID]float64{5: 1000}})
	assertOutcome(t, r, true, true, 5)
}

func TestLCR_LargestFails_NeverEnds(t *testing.T) {
	r := mustRun(t, Config{Algorithm: "lcr", IDs: slides(),
		Faults: []sim.Fault{{ID: 80, At: at(2.5)}}})
	if r.Live || r.Ended != "limit" {
		t.Errorf("a dead candidate's id must go round for ever: %+v", r)
	}
}

func TestBroadcast_OneLoss_BreaksAgreement(t *testing.T) {
	r := mustRun(t, Config{Algorithm: "broadcast", IDs: upTo(3),
		Network: sim.Network{Drop: []sim.Nth{{Type: "id", K: 6}}}})
	assertOutcome(t, r, false, true, sim.None)
}

// TestAnonymous_EqualInputs_StatesStayEqual is the proof by induction, run: after
// every round all processes are in the same state, so none differs to lead.
func TestAnonymous_EqualInputs_StatesStayEqual(t *testing.T) {
	for n := 2; n <= 32; n++ {
		c := Config{Algorithm: "anonymous", IDs: upTo(n)}
		rounds := 0
		last := time.Duration(0)
		r, err := newRun(&c)
		if err != nil {
			t.Fatal(err)
		}
		r.schedule()
		before := make(map[sim.ID]sim.Node)
		r.sim.Run(func() bool {
			if r.sim.Now() > last && len(before) == n {
				rounds++
				assertSameStates(t, before, n)
			}
			last = r.sim.Now()
			for _, id := range c.IDs {
				before[id] = r.sim.Node(id)
			}
			return false
		})
		if rounds < anonymousLaps*(n-1) {
			t.Errorf("n=%d: %d rounds compared, want %d", n, rounds, anonymousLaps*(n-1))
		}
	}
}

func assertSameStates(t *testing.T, states map[sim.ID]sim.Node, n int) {
	t.Helper()
	first := states[1].(anonymous)
	for id, node := range states {
		a := node.(anonymous)
		if a.round != first.round || a.leads != first.leads || a.passes != first.passes ||
			len(a.view) != len(first.view) {
			t.Fatalf("n=%d: %v is in state %+v, N1 in %+v", n, id, a, first)
		}
	}
}

// TestAnonymous_UnequalInputs_Elects shows that the program can elect: it is the
// symmetry that keeps it from doing so.
func TestAnonymous_UnequalInputs_Elects(t *testing.T) {
	var members []sim.Member
	for i, input := range []int{1, 0, 1, 1, 0} {
		members = append(members, sim.Member{ID: sim.ID(i + 1),
			Node: anonymous{n: 5, input: input, limit: 20}})
	}
	s, err := sim.New(sim.Config{}, members)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		s.Command(0, m.ID, Elect{})
	}
	s.Run(nil)
	leaders := 0
	for _, m := range members {
		if s.Node(m.ID).(anonymous).leads {
			leaders++
		}
	}
	if leaders != 1 {
		t.Errorf("%d leaders on a ring without symmetry, want 1", leaders)
	}
}

func TestMajority_TwoOfThreeDown_NoLeader(t *testing.T) {
	r := mustRun(t, Config{Algorithm: "majority", IDs: upTo(3), Seed: 1,
		Faults: []sim.Fault{{ID: 2}, {ID: 3}}})
	assertOutcome(t, r, true, false, sim.None)
}

func TestMajority_NoSpread_SplitsForEver(t *testing.T) {
	c := Config{Algorithm: "majority", IDs: upTo(4), Seed: 1, NoSpread: true}
	assertOutcome(t, mustRun(t, c), true, false, sim.None)
	c.NoSpread = false
	if r := mustRun(t, c); !r.Live || !r.Safe {
		t.Errorf("random timeouts must break the tie: %+v", r)
	}
}

// TestMajority_Partition_MinorityElectsNobody cuts two of five off for the whole
// run, with the leader on either side when the cut comes.
func TestMajority_Partition_MinorityElectsNobody(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		watch := &leaderWatch{from: at(60)}
		r := mustRun(t, Config{Algorithm: "majority", IDs: upTo(5), Seed: seed, MaxTime: at(200),
			Network: sim.Network{Partitions: []sim.Partition{{From: at(40), Until: at(1000),
				Groups: [][]sim.ID{{1, 2}, {3, 4, 5}}}}},
			Observers: []sim.Observer{watch}})
		if !r.Safe && len(r.Violations) > 0 && strings.Contains(r.Violations[0].Text, "term") {
			t.Errorf("seed %d: %v", seed, r.Violations)
		}
		if watch.low > 0 {
			t.Errorf("seed %d: the minority elected a leader", seed)
		}
	}
}

// leaderWatch counts declarations of processes 1 and 2 from a time on.
type leaderWatch struct {
	from time.Duration
	low  int
}

func (w *leaderWatch) Observe(r sim.Record) {
	if r.Kind == sim.Noted && r.Fact.Name == FactLeader && r.Fact.About == r.Process &&
		r.Process <= 2 && r.At >= w.from {
		w.low++
	}
}

// TestZooKeeper_LeaderCutOff_StepsDownFirst: over many seeds no two processes
// lead at once although the old leader is alive behind the partition.
func TestZooKeeper_LeaderCutOff_StepsDownFirst(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		for _, name := range []string{"zookeeper", "zookeeper-herd"} {
			r := mustRun(t, Config{Algorithm: name, IDs: upTo(4), Seed: seed, CheckPure: seed%50 == 0,
				Network: sim.Network{Delay: sim.Delay{Min: at(0.1), Max: at(1)},
					Partitions: []sim.Partition{{From: at(15), Until: at(60), Groups: [][]sim.ID{{3, 4}, {1,
						2}}}}}})
			if !r.Safe || !r.Live {
				t.Errorf("%s seed %d: %+v", name, seed, r)
			}
		}
	}
}

// TestMajority_LossAndDuplication_Safe: the vote is safe on any network.
func TestMajority_LossAndDuplication_Safe(t *testing.T) {
	for seed := uint64(1); seed <= 1000; seed++ {
		ids := upTo(3 + int(seed%4))
		r := mustRun(t, Config{Algorithm: "majority", IDs: ids, Seed: seed,
			Faults: randomFaults(seed, ids, len(ids)/2+1, at(80)),
			Network: sim.Network{Delay: sim.Delay{Min: at(0.1), Max: at(3)}, Reorder: true,
				Loss: float64(seed%4) / 10, Duplication: 0.2}})
		for _, v := range r.Violations {
			if strings.Contains(v.Text, "term") {
				t.Errorf("seed %d: %s", seed, v)
			}
		}
	}
}
