package problem

import (
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

func at(t float64) time.Duration { return time.Duration(t * float64(sim.Unit)) }

func upTo(n int) (ids []sim.ID) {
	for i := range n {
		ids = append(ids, sim.ID(i+1))
	}
	return ids
}

func mustRun(t *testing.T, c Config) Result {
	t.Helper()
	p, err := Lookup(c.Problem)
	if err != nil {
		t.Fatal(err)
	}
	if c.IDs == nil {
		c.IDs = upTo(p.N)
	}
	r, err := Run(c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	for kind := range r.Messages.ByType {
		if !contains(p.use.Types, kind) {
			t.Errorf("%s sends messages of type %q, which it does not name", p.Name, kind)
		}
	}
	return r
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func assertOutcome(t *testing.T, name string, r Result, safe, live bool) {
	t.Helper()
	if r.Safe != safe || r.Live != live {
		t.Errorf("%s: safe %v live %v, want %v %v: %+v", name, r.Safe, r.Live, safe, live, r)
	}
}

func jitter() sim.Network { return sim.Network{Delay: sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}} }

// TestGenerals_NoNumberOfMessagesIsEnough goes through all losses of one message.
func TestGenerals_NoNumberOfMessagesIsEnough(t *testing.T) {
	for k := 1; k <= 12; k++ {
		assertOutcome(t, "none lost", mustRun(t, Config{Problem: "two-generals", Rounds: k, CheckPure: true}), true, true)
		for lost := 1; lost <= k; lost++ {
			r := mustRun(t, Config{Problem: "two-generals", Rounds: k,
				Network: sim.Network{Drop: []sim.Nth{{Type: "attack", K: lost}}}})
			assertOutcome(t, "one lost", r, lost < k, false)
		}
	}
}

func TestBoundedGenerals_GapIsAtMostMaxMinusMin(t *testing.T) {
	for seed := uint64(1); seed <= 500; seed++ {
		r := mustRun(t, Config{Problem: "two-generals-bounded", Seed: seed, CheckPure: true,
			Network: sim.Network{Delay: sim.Delay{Min: at(1), Max: at(4)}}})
		assertOutcome(t, "bounded", r, true, true)
	}
	late := sim.Network{Delay: sim.Delay{Min: at(1), Max: at(4)},
		Late: []sim.Late{{Nth: sim.Nth{Type: "attack", K: 1}, Delay: at(9)}}}
	assertOutcome(t, "late", mustRun(t, Config{Problem: "two-generals-bounded", Network: late}), false, true)
}

// TestCommit_TheSameCrash: two-phase commit blocks where the broadcast goes on.
func TestCommit_TheSameCrash(t *testing.T) {
	for _, when := range []float64{1, 1.5, 2} {
		crash := []sim.Fault{{ID: 1, At: at(when)}}
		assertOutcome(t, "two-phase commit", mustRun(t, Config{Problem: "two-phase-commit", Faults: crash}), true, false)
		assertOutcome(t, "zab", mustRun(t, Config{Problem: "zab", Faults: crash}), true, true)
	}
}

// TestCommit_CrashesAndRecoveries_Safe: with random crashes no process ever commits what
// another aborts; two-phase commit ends if its coordinator comes back, and the broadcast
// whenever a majority is up.
func TestCommit_CrashesAndRecoveries_Safe(t *testing.T) {
	for _, name := range []string{"two-phase-commit", "zab"} {
		for seed := uint64(1); seed <= 1500; seed++ {
			n := 3 + int(seed%4)
			c := Config{Problem: name, IDs: upTo(n), Seed: seed, Network: jitter(), CheckPure: seed%20 == 0}
			random, draw := sim.Random(seed), int64(0)
			for id := 1; id <= (n-1)/2; id++ {
				draw, random = random.Next(6000)
				crash := time.Duration(draw) * time.Microsecond
				c.Faults = append(c.Faults, sim.Fault{ID: sim.ID(id), At: crash + 1})
				if draw, random = random.Next(2); draw == 0 {
					c.Faults = append(c.Faults, sim.Fault{ID: sim.ID(id), At: crash + at(15), Recover: true})
				}
			}
			r := mustRun(t, c)
			if !r.Safe || name == "zab" && !r.Live {
				t.Fatalf("%s seed %d %v: %+v", name, seed, c.Faults, r)
			}
		}
	}
}

// TestPrimary_Crash_NothingLost, and early confirmation or a partition loses something.
func TestPrimary_Crash_NothingLost(t *testing.T) {
	for seed := uint64(1); seed <= 1000; seed++ {
		draw, _ := sim.Random(seed).Next(30_000)
		c := Config{Problem: "primary-backup", Seed: seed, Rounds: 5, Network: jitter(), CheckPure: seed%20 == 0,
			Faults: []sim.Fault{{ID: 1, At: time.Duration(draw) * time.Microsecond}}}
		if r := mustRun(t, c); !r.Safe || !r.Live {
			t.Fatalf("seed %d: %+v", seed, r)
		}
	}
	early := Config{Problem: "primary-backup", Early: true, Faults: []sim.Fault{{ID: 1, At: at(1.5)}},
		Network: sim.Network{Drop: []sim.Nth{{Type: "update", K: 2}}}}
	assertOutcome(t, "early", mustRun(t, early), false, true)
	early.Early = false
	assertOutcome(t, "not early", mustRun(t, early), true, true)
	cut := Config{Problem: "primary-backup", Rounds: 5, Network: sim.Network{Partitions: []sim.Partition{
		{From: at(4), Until: at(40), Groups: [][]sim.ID{{1, 3}, {2, 4}}}}}}
	assertOutcome(t, "partition", mustRun(t, cut), false, true)
}

func TestDeadlock_VictimBreaksIt(t *testing.T) {
	for seed := uint64(1); seed <= 500; seed++ {
		n := 2 + int(seed%6)
		r := mustRun(t, Config{Problem: "deadlock", IDs: upTo(n), Seed: seed, Network: jitter(), CheckPure: seed%20 == 0})
		assertOutcome(t, "broken", r, true, true)
		if n > 2 && (r.Leader == nil || int(*r.Leader) != n) {
			t.Errorf("n=%d: victim %v, want the highest", n, r.Leader)
		}
	}
	r := mustRun(t, Config{Problem: "deadlock", Unbroken: true})
	assertOutcome(t, "unbroken", r, true, false)
	if len(r.Measures) == 0 || !strings.Contains(r.Measures[0].Value, "N3 for N1") {
		t.Errorf("the cycle is not named: %v", r.Measures)
	}
}

func TestRun_Refuses(t *testing.T) {
	for name, c := range map[string]Config{
		"unknown":       {Problem: "three-generals"},
		"three":         {Problem: "two-generals", IDs: upTo(3)},
		"no vote":       {Problem: "zab", IDs: upTo(3), Against: []sim.ID{2}},
		"coordinator":   {Problem: "two-phase-commit", IDs: upTo(3), Against: []sim.ID{1}},
		"early":         {Problem: "zab", IDs: upTo(3), Early: true},
		"unbroken":      {Problem: "zab", IDs: upTo(3), Unbroken: true},
		"rounds":        {Problem: "two-generals", IDs: upTo(2), Rounds: -1},
		"wrong message": {Problem: "zab", IDs: upTo(3), Network: sim.Network{Drop: []sim.Nth{{Type: "x", K: 1}}}},
	} {
		if _, err := Run(c); err == nil {
			t.Errorf("%s: ran", name)
		}
	}
}
