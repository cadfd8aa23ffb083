package labcli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// TestJudge_WrongProgram_ShownAndRepeated: the run that is printed fails again when it is given.
func TestJudge_WrongProgram_ShownAndRepeated(t *testing.T) {
	tier.Seconds(t)
	program := filepath.Join(t.TempDir(), "ricart")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../judge/testdata/ricart").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := output(t, "judge --task mutex --trace -- "+program+" -forgets")
	if err == nil || !strings.Contains(out, "FAILS") || !strings.Contains(out, "N1 ENTERS") {
		t.Fatalf("with -forgets: error %v, want one, and that N1 enters in a run that fails:\n%s", err, out)
	}
	_, rest, _ := strings.Cut(out, "the run: ")
	run, _, _ := strings.Cut(rest, "\n")
	again, err := output(t, "judge --task mutex --run '"+run+"' -- "+program+" -forgets")
	if err == nil || !strings.Contains(again, "FAILS in run 1") {
		t.Errorf("run %s again: error %v, want one, and that run 1 fails:\n%s", run, err, again)
	}
	good, err := output(t, "judge --task mutex --runs 20 --json -- "+program)
	if err != nil || !strings.Contains(good, `"passed": true`) {
		t.Errorf("a correct program: error %v, want none, and that it passed:\n%s", err, good)
	}
}
