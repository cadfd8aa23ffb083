package election

import (
	"testing"

	"github.com/zk-lite/zk-lite/lab/sim"
)

// TestForms_Crashes_SafeAndLive gives the other forms of bully the random crashes of the
// main property. Announcing once is for runs in which messages arrive.
func TestForms_Crashes_SafeAndLive(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"ask all":       func(c *Config) { c.AskAll = true },
		"tell all":      func(c *Config) { c.TellAll = true },
		"ask, tell all": func(c *Config) { c.AskAll, c.TellAll = true, true },
		"by attribute": func(c *Config) {
			c.Attributes = map[sim.ID]float64{1: 100.5, 2: 100.25}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 500; seed++ {
				ids := shuffled(seed, 2+int(seed%8))
				c := Config{Algorithm: "bully", IDs: ids, Seed: seed, CheckPure: seed%50 == 0,
					Faults:  randomFaults(seed, ids, 1, 40*sim.Unit),
					Network: sim.Network{Delay: sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}}}
				set(&c)
				if r := mustRun(t, c); !r.Safe || !r.Live {
					t.Fatalf("seed %d ids %v faults %v: %+v", seed, ids, c.Faults, r)
				}
			}
		})
	}
}

// TestParticipants_NoFaults_OneLeader: the rule of participants elects the best, no matter who
// starts and when.
func TestParticipants_NoFaults_OneLeader(t *testing.T) {
	for seed := uint64(1); seed <= 500; seed++ {
		ids := shuffled(seed, 2+int(seed%8))
		c := Config{Algorithm: "ring", Participants: true, IDs: ids, Seed: seed, CheckPure: seed%50 == 0,
			Network: sim.Network{Delay: sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}}}
		random := sim.Random(seed)
		for _, id := range ids {
			var draw int64
			if draw, random = random.Next(3); draw > 0 {
				c.Initiators = append(c.Initiators, Initiator{ID: id, At: at(float64(draw))})
			}
		}
		if r := mustRun(t, c); !r.Safe || !r.Live || leaderOf(r) != sim.ID(len(ids)) {
			t.Fatalf("seed %d: %+v", seed, r)
		}
	}
}

// TestInitiator_KnowsOfCrashesUntilItStarts: a later initiator misses the coordinator that
// has crashed meanwhile.
func TestInitiator_KnowsOfCrashesUntilItStarts(t *testing.T) {
	r := mustRun(t, Config{Algorithm: "bully", IDs: upTo(6), Detector: DetectorNone,
		Initiators: []Initiator{{ID: 5, At: at(4)}}, Faults: []sim.Fault{{ID: 6, At: at(3)}}})
	assertOutcome(t, r, true, true, 5)
	if r.Messages.Total != 4 || *r.Time != 5 {
		t.Errorf("%d messages, time %g: N5 knows that it is the highest, and tells 4", r.Messages.Total, *r.Time)
	}
}

// TestRing_LeaderFailsAfterElected_NeighboursRepair is the lectures' second occasion.
func TestRing_LeaderFailsAfterElected_NeighboursRepair(t *testing.T) {
	for _, d := range []Detector{DetectorNeighbour, DetectorSuccessor} {
		for _, when := range []float64{4.5, 6, 8.5, 9.5} {
			r := mustRun(t, Config{Algorithm: "ring", IDs: slides(), Initiators: from(3), Detector: d,
				Faults: []sim.Fault{{ID: 80, At: at(when)}}, CheckPure: true})
			if !r.Safe || !r.Live || leaderOf(r) != 32 {
				t.Errorf("%s, crash at %g: %+v", d, when, r)
			}
		}
	}
}

// TestDrawn_Gap_NoLeader: the scheme of the slides survives the leader, and the next one,
// but not those and a process between.
func TestDrawn_Gap_NoLeader(t *testing.T) {
	c := Config{Algorithm: "zookeeper-drawn", IDs: slides(), CheckPure: true,
		Faults: []sim.Fault{{ID: 80, At: at(7)}, {ID: 32, At: at(30)}}}
	assertOutcome(t, mustRun(t, c), true, true, 12)
	c.Faults = append(c.Faults, sim.Fault{ID: 12, At: at(1)})
	assertOutcome(t, mustRun(t, c), true, false, sim.None)
}

func TestRun_Refuses_WhatWouldMeanNothing(t *testing.T) {
	for name, c := range map[string]Config{
		"S crashes":           {Algorithm: "zookeeper", Faults: []sim.Fault{{ID: sim.Service}}},
		"rule for bully":      {Algorithm: "bully", Participants: true},
		"form for ring":       {Algorithm: "ring", AskAll: true},
		"wait for ring":       {Algorithm: "ring", CoordinatorTimeout: at(1)},
		"starter of drawn":    {Algorithm: "zookeeper-drawn", Initiators: from(1)},
		"attribute for lcr":   {Algorithm: "lcr", Attributes: map[sim.ID]float64{1: 2}},
		"neighbour and rule":  {Algorithm: "ring", Participants: true, Detector: DetectorSuccessor},
		"initiator not there": {Algorithm: "ring", Initiators: from(9)},
	} {
		c.IDs = upTo(3)
		if r, err := Run(c); err == nil {
			t.Errorf("%s: ran, %+v", name, r)
		}
	}
}
