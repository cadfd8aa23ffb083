package election

import (
	"testing"

	"github.com/zk-lite/zk-lite/lab/scenario"
)

// TestScenarioRunner_KillLeader_KeepsThePromise: both forms, many sizes.
func TestScenarioRunner_KillLeader_KeepsThePromise(t *testing.T) {
	for n := 2; n <= 40; n++ {
		for _, herd := range []bool{true, false} {
			k := scenario.KillLeader{Candidates: n, Herd: herd}
			o, err := ScenarioRunner{Seed: 1}.KillLeader(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Judge(o); err != nil {
				t.Errorf("%+v: %v", k, err)
			}
		}
	}
	if _, err := (ScenarioRunner{}).KillLeader(t.Context(), scenario.KillLeader{Candidates: 1}); err == nil {
		t.Error("a scenario without a successor is accepted")
	}
}
