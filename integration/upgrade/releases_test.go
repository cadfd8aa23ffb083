//go:build upgrade

package upgrade_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/cluster"
)

// release is a build of zk-lite and the highest feature level that it speaks.
type release struct {
	binary string // empty: the one to test
	level  state.Level
}

// current is the build to test.
var current = release{level: state.MaxLevel}

// previous builds the last release of releases.txt from its commit, in a clone.
func previous(t *testing.T) release {
	t.Helper()
	text, err := os.ReadFile("releases.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var name, commit string
	var r release
	if _, err := fmt.Sscan(lines[len(lines)-1], &name, &commit, &r.level); err != nil {
		t.Fatalf("releases.txt: %q: %v", lines[len(lines)-1], err)
	}
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err == nil {
		err = exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run()
	}
	if err != nil {
		t.Fatalf("this checkout does not have commit %s, of %s: get its history (git fetch --unshallow): %v",
			commit, name, err)
	}
	clone := t.TempDir()
	r.binary = filepath.Join(clone, "bin", "zk-lite")
	run(t, "", "git", "clone", "-q", "--shared", "--no-checkout", strings.TrimSpace(string(top)), clone)
	run(t, clone, "git", "checkout", "-q", commit)
	run(t, clone, "go", "build", "-o", r.binary, "./cmd/zk-lite")
	return r
}

// next builds what plays the next release.
func next(t *testing.T) release {
	t.Helper()
	r := release{filepath.Join(t.TempDir(), "zk-lite"), current.level + 1}
	if err := cluster.Build(r.binary, "-tags", "nextrelease"); err != nil {
		t.Fatal(err)
	}
	return r
}
