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

// release is a build of zk-lite and its highest feature level.
type release struct {
	name   string // as in releases.txt; empty: not released
	commit string
	binary string // empty: the one to test
	level  state.Level
}

// current is the build to test.
var current = release{level: state.MaxLevel}

// last is the last release of releases.txt, which is not built.
func last(t *testing.T) (r release) {
	t.Helper()
	text, err := os.ReadFile("releases.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if _, err := fmt.Sscan(lines[len(lines)-1], &r.name, &r.commit, &r.level); err != nil {
		t.Fatalf("releases.txt: %q: %v", lines[len(lines)-1], err)
	}
	return r
}

// previous builds the last release from its commit, in a clone.
func previous(t *testing.T) release {
	t.Helper()
	r := last(t)
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err == nil {
		err = exec.Command("git", "cat-file", "-e", r.commit+"^{commit}").Run()
	}
	if err != nil {
		t.Fatalf("this checkout does not have commit %s, of %s: get its history (git fetch --unshallow): %v",
			r.commit, r.name, err)
	}
	clone := t.TempDir()
	r.binary = filepath.Join(clone, "bin", "zk-lite")
	run(t, "", "git", "clone", "-q", "--shared", "--no-checkout", strings.TrimSpace(string(top)), clone)
	run(t, clone, "git", "checkout", "-q", r.commit)
	run(t, clone, "go", "build", "-o", r.binary, "./cmd/zk-lite")
	return r
}

// next builds what plays the next release.
func next(t *testing.T) release {
	t.Helper()
	r := release{binary: filepath.Join(t.TempDir(), "zk-lite"), level: current.level + 1}
	if err := cluster.Build(r.binary, "-tags", "nextrelease"); err != nil {
		t.Fatal(err)
	}
	return r
}
