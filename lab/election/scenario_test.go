package election

import (
	"testing"
)

// TestScenarioRunner_KillLeader_KeepsThePromise: both forms, many sizes.
func TestScenarioRunner_KillLeader_KeepsThePromise(t *testing.T) {
	for n := 2; n <= 40; n++ {
		for _, herd := range []bool{true, false} {
			k := KillLeader{Candidates: n, Herd: herd}
			o, err := ScenarioRunner{Seed: 1}.KillLeader(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Judge(o); err != nil {
				t.Errorf("%+v: %v", k, err)
			}
		}
	}
	if _, err := (ScenarioRunner{}).KillLeader(t.Context(), KillLeader{Candidates: 1}); err == nil {
		t.Error("a scenario without a successor is accepted")
	}
}
