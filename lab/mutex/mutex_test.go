package mutex

import (
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/lab/sim"
)

func upTo(n int) []sim.ID {
	ids := make([]sim.ID, n)
	for i := range ids {
		ids[i] = sim.ID(i + 1)
	}
	return ids
}

// assertKnownTypes fails for a message of a type that --drop would refuse.
func assertKnownTypes(t *testing.T, c Config, r Result) {
	t.Helper()
	a, err := Lookup(c.Algorithm)
	if err != nil {
		t.Fatal(err)
	}
	for kind := range r.Messages.ByType {
		if !slices.Contains(a.use.Types, kind) {
			t.Errorf("%s sends messages of type %q, which it does not name", a.Name, kind)
		}
	}
}

func mustRun(t *testing.T, c Config) Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatalf("run %s: %v", c.Algorithm, err)
	}
	assertKnownTypes(t, c, r)
	return r
}

// TestRun_Contention_SafeAndLive runs every algorithm with all processes asking
// again and again under random delays.
func TestRun_Contention_SafeAndLive(t *testing.T) {
	tier.Seconds(t)
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 200
	}
	for _, a := range Algorithms() {
		t.Run(a.Name, func(t *testing.T) {
			bad := 0
			for seed := uint64(1); seed <= seeds && bad < 3; seed++ {
				n := 1 + int(seed%9)
				r := mustRun(t, Config{Algorithm: a.Name, IDs: upTo(n), Seed: seed, Requests: 3,
					CheckPure: seed%50 == 0,
					Spacing:   time.Duration(seed%4) * sim.Unit / 2, Hold: sim.Unit / 2,
					Think:   time.Duration(seed%3) * sim.Unit,
					Network: sim.Network{Delay: sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}}})
				if !r.Safe || !r.Live || r.Entries != 3*n {
					bad++
					t.Errorf("seed %d n %d: safe %v live %v entries %d ended %s %v",
						seed, n, r.Safe, r.Live, r.Entries, r.Ended, r.Violations)
				}
			}
		})
	}
}

// TestRun_CrashStop_Safe: crashes without recovery may stop any of the classical
// algorithms, but must never let two in.
func TestRun_CrashStop_Safe(t *testing.T) {
	tier.Seconds(t)
	stuck := map[string]int{}
	for _, a := range Algorithms() {
		for seed := uint64(1); seed <= 1000; seed++ {
			n := 2 + int(seed%7)
			victim, random := sim.Random(seed).Next(int64(n))
			when, _ := random.Next(30_000)
			r := mustRun(t, Config{Algorithm: a.Name, IDs: upTo(n), Seed: seed, Requests: 2,
				Faults:  []sim.Fault{{ID: sim.ID(victim + 1), At: time.Duration(when) * time.Microsecond}},
				Network: sim.Network{Delay: sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}}})
			if !r.Safe {
				t.Errorf("%s seed %d: %v", a.Name, seed, r.Violations)
			}
			if !r.Live {
				stuck[a.Name]++
			}
		}
	}
	t.Logf("runs of 1000 that one crash stopped: %v", stuck)
	for _, a := range Algorithms() {
		if (stuck[a.Name] == 0) != (a.Name == "zookeeper") {
			t.Errorf("%s: %d runs stopped; only the recipe with sessions may have none",
				a.Name, stuck[a.Name])
		}
	}
}
