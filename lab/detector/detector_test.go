package detector

import (
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/lab/sim"
)

func at(t float64) time.Duration { return time.Duration(t * float64(sim.Unit)) }

func config(seed uint64) Config {
	return Config{IDs: []sim.ID{1, 2, 3, 4, 5}, Timing: Timing{Period: at(2), Timeout: at(1)},
		Length: at(200), Seed: seed, Faults: []sim.Fault{{ID: 3, At: at(50)}},
		Network:   sim.Network{Delay: sim.Delay{Min: at(0.1), Max: at(1)}},
		CheckPure: seed%10 == 0}
}

func mustRun(t *testing.T, c Config) Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRun_BoundedDelay_CompleteAndAccurate: with no loss and D at least the spread of the delay
// no process is suspected wrongly, and a crash is noticed within T + D and one message time.
func TestRun_BoundedDelay_CompleteAndAccurate(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		q := mustRun(t, config(seed)).Quality
		if q.Completeness != 1 || q.Accuracy != 1 || q.FalseSuspicions != 0 {
			t.Errorf("seed %d: %v", seed, q)
		}
		if q.DetectionMax > 2+1+1 || q.DetectionMean <= 0 {
			t.Errorf("seed %d: detection %v to %v, want within T+D and a message time", seed,
				q.DetectionMean, q.DetectionMax)
		}
	}
}

// TestRun_LossGrows_AccuracyFalls: losses cost accuracy, never completeness at
// the end of a long silence.
func TestRun_LossGrows_AccuracyFalls(t *testing.T) {
	last := 1.1
	for _, loss := range []float64{0, 0.1, 0.3, 0.5} {
		sum := 0.0
		for seed := uint64(1); seed <= 20; seed++ {
			c := config(seed)
			c.Network.Loss = loss
			q := mustRun(t, c).Quality
			if q.Completeness != 1 {
				t.Errorf("loss %v seed %d: %v", loss, seed, q)
			}
			sum += q.Accuracy / 20
		}
		if sum >= last {
			t.Errorf("loss %v: accuracy %v is not below %v", loss, sum, last)
		}
		last = sum
	}
}

// TestRun_TimeoutGrows_TradesSpeedForAccuracy: a patient detector errs less and
// is slower.
func TestRun_TimeoutGrows_TradesSpeedForAccuracy(t *testing.T) {
	mistakes, delay := 1<<30, 0.0
	for _, timeout := range []float64{0.5, 2, 6} {
		sum, slow := 0, 0.0
		for seed := uint64(1); seed <= 20; seed++ {
			c := config(seed)
			c.Timing.Timeout, c.Network.Loss = at(timeout), 0.2
			q := mustRun(t, c).Quality
			sum += q.FalseSuspicions
			slow += q.DetectionMean
		}
		if sum >= mistakes || slow <= delay {
			t.Errorf("D=%v: %d mistakes (before %d), detection %v (before %v)", timeout, sum,
				mistakes, slow, delay)
		}
		mistakes, delay = sum, slow
	}
}

func TestRun_Partition_SuspectsAndTrustsAgain(t *testing.T) {
	c := config(1)
	c.Faults = nil
	c.Network.Partitions = []sim.Partition{{From: at(20), Until: at(40),
		Groups: [][]sim.ID{{1, 2}, {3, 4, 5}}}}
	r := mustRun(t, c)
	if r.Safe || r.Quality.FalseSuspicions != 12 || r.Quality.Accuracy < 0.9 {
		t.Errorf("want the 12 pairs across the cut to suspect once and trust again: %v", r.Quality)
	}
}

func TestRun_Errors(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no period":  func(c *Config) { c.Timing.Period = 0 },
		"no length":  func(c *Config) { c.Length = 0 },
		"no process": func(c *Config) { c.IDs = nil },
	} {
		c := config(1)
		c.Faults = nil
		change(&c)
		if _, err := Run(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
