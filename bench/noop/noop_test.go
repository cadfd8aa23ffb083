package noop_test

import (
	"slices"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/bench/noop"
)

// TestServer_AnswersEveryOperation: in order and whole, one at a time and many
// together, as the generator's own checks find.
func TestServer_AnswersEveryOperation(t *testing.T) {
	s, err := noop.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, inFlight := range []int{1, 64} {
		cfg := load.Default()
		cfg.Hosts, cfg.Connections, cfg.InFlight = []string{s.Addr()}, 4, inFlight
		cfg.Duration, cfg.WarmUp, cfg.Mix = 100*time.Millisecond, 0, nil
		for _, op := range load.Ops() {
			cfg.Mix = append(cfg.Mix, load.Share{Op: op, Weight: 1})
		}
		res, err := load.Run(t.Context(), cfg)
		for err == nil && slices.ContainsFunc(res.Ops, unmeasured) && cfg.Duration < time.Minute {
			cfg.Duration *= 4 // a busy machine may send nothing of a kind in a moment
			res, err = load.Run(t.Context(), cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range res.Ops {
			if o.Latency.Count == 0 || len(o.Errors) > 0 {
				t.Errorf("%s: %d answers, errors %v", o.Name, o.Latency.Count, o.Errors)
			}
		}
		if res.Unanswered != 0 || res.Dropped != 0 {
			t.Errorf("%d unanswered, %d dropped", res.Unanswered, res.Dropped)
		}
	}
}

func unmeasured(o load.OpResult) bool { return o.Latency.Count == 0 }

func TestServer_Close_EndsConnections(t *testing.T) {
	s, err := noop.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := load.Default()
	cfg.Hosts, cfg.Connections, cfg.WarmUp = []string{s.Addr()}, 4, 0
	cfg.Duration, cfg.Keep = time.Minute, true
	cfg.Measured = func(bool) { go s.Close() }
	start := time.Now()
	if _, err := load.Run(t.Context(), cfg); err == nil || time.Since(start) > cfg.Duration {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}
