//go:build interop

package judge

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestJudge_Python_RightPassWrongFail is the other language: Debian's python3.
func TestJudge_Python_RightPassWrongFail(t *testing.T) {
	right := Config{Command: []string{"python3", "testdata/bully.py"}, Task: Election, Runs: 100, Crashes: 2, Recoveries: true,
		Like: "bully"}
	if r := judged(t, right); !r.Passed || r.Compared == 0 {
		t.Errorf("%+v, %+v, want runs that pass", r, r.Failure)
	}
	hasty := judged(t, Config{Command: []string{"python3", "testdata/bully_hasty.py"}, Task: Election, Runs: 200})
	assertFails(t, hasty, "safety", "--ids 1,2 --initiator 1")
	polite := judged(t, Config{Command: []string{"python3", "testdata/lock_polite.py"}, Task: Mutex, Runs: 200})
	assertFails(t, polite, "safety", "--ids 1,2")
}

func TestSkeleton_PythonAndJava_SpeakTheProtocol(t *testing.T) {
	assertBegins(t, "python3", filepath.Join(skeleton(t, "python", "mine.py"), "mine.py"))
	dir := skeleton(t, "java", "Program.java")
	build := exec.CommandContext(t.Context(), "javac", "-Xlint:-unchecked", filepath.Join(dir, "Program.java"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	assertBegins(t, "java", "-cp", dir, "Program")
}
