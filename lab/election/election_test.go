package election

import (
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/lab/detector"
	"github.com/zk-lite/zk-lite/lab/sim"
)

// upTo returns the ids 1 to n ascending.
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
		if c.Detector == DetectorHeartbeat && kind == (detector.Heartbeat{}).Type() {
			continue
		}
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

func leaderOf(r Result) sim.ID {
	if r.Leader == nil {
		return sim.None
	}
	return *r.Leader
}

func TestRun_AllAlgorithms_ElectOnAQuietNetwork(t *testing.T) {
	for _, a := range Algorithms() {
		for n := 1; n <= 12; n++ {
			r := mustRun(t, Config{Algorithm: a.Name, IDs: upTo(n), Seed: 1, CheckPure: true})
			if a.Name == "anonymous" && n > 1 {
				if r.Live || r.Leader != nil || !r.Safe {
					t.Errorf("anonymous n=%d elected: %+v", n, r)
				}
				continue
			}
			if !r.Safe || !r.Live || r.Leader == nil {
				t.Errorf("%s n=%d: %+v", a.Name, n, r)
			}
			if a.best && leaderOf(r) != sim.ID(n) {
				t.Errorf("%s n=%d: leader %v, want the highest", a.Name, n, leaderOf(r))
			}
		}
	}
}

// randomFaults crashes and recovers processes at random times, at most two
// faults to a process, leaving at least least of them up at the end.
func randomFaults(seed uint64, ids []sim.ID, least int, span time.Duration) []sim.Fault {
	random := sim.Random(seed)
	var draw int64
	var faults []sim.Fault
	up := len(ids)
	for _, id := range ids {
		draw, random = random.Next(3)
		if draw > 0 {
			continue
		}
		draw, random = random.Next(int64(span / time.Microsecond))
		at := time.Duration(draw) * time.Microsecond
		draw, random = random.Next(2)
		if draw == 0 && up > least {
			up--
			faults = append(faults, sim.Fault{ID: id, At: at})
			continue
		}
		draw, random = random.Next(int64(span / time.Microsecond))
		back := at + time.Duration(draw+1)*time.Microsecond
		faults = append(faults, sim.Fault{ID: id, At: at}, sim.Fault{ID: id, At: back, Recover: true})
	}
	return faults
}

func shuffled(seed uint64, n int) []sim.ID {
	ids := upTo(n)
	random := sim.Random(seed)
	var draw int64
	for i := n - 1; i > 0; i-- {
		draw, random = random.Next(int64(i + 1))
		ids[i], ids[draw] = ids[draw], ids[i]
	}
	return ids
}

// TestRun_Crashes_SafeAndLive is the main property: with accurate timeouts and a
// perfect detector the algorithms that claim to survive crashes do, for
// thousands of seeds with random crashes, recoveries, delays and ring orders.
func TestRun_Crashes_SafeAndLive(t *testing.T) {
	tier.Seconds(t)
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 300
	}
	for _, name := range []string{"bully", "ring", "majority", "zookeeper-herd", "zookeeper"} {
		t.Run(name, func(t *testing.T) {
			bad := 0
			for seed := uint64(1); seed <= seeds && bad < 5; seed++ {
				n := 2 + int(seed%8)
				ids := shuffled(seed, n)
				least := 1
				if name == "majority" {
					least = n/2 + 1
				}
				c := Config{Algorithm: name, IDs: ids, Seed: seed, CheckPure: seed%50 == 0,
					Faults:  randomFaults(seed, ids, least, 40*sim.Unit),
					Network: sim.Network{Delay: sim.Delay{Min: sim.Unit / 10, Max: sim.Unit}}}
				r := mustRun(t, c)
				if !r.Safe || !r.Live {
					bad++
					t.Errorf("seed %d ids %v faults %v: safe %v live %v ended %s %v",
						seed, ids, c.Faults, r.Safe, r.Live, r.Ended, r.Violations)
				}
			}
		})
	}
}

// from makes processes start an election at time 0.
func from(ids ...sim.ID) []Initiator {
	var all []Initiator
	for _, id := range ids {
		all = append(all, Initiator{ID: id})
	}
	return all
}
