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

// TestJudge_Texts: the protocol and the skeletons are in the program, so packages have them, too.
func TestJudge_Texts(t *testing.T) {
	for line, want := range map[string]string{"judge --protocol": "## Answers", "judge --skeleton python": "def elect(",
		"judge --skeleton go": "func main()", "judge --skeleton java": "public class Program"} {
		if out, err := output(t, line); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q in:\n%s", line, err, want, out)
		}
	}
	for line, want := range map[string]string{"judge --skeleton basic": "want one of go", "judge --protocol -- x": "no program",
		"judge --protocol --skeleton go": "one of them"} {
		if _, err := output(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
