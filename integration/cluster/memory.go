package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// MemoryGroup is a control group with so much memory. What runs in it and needs more is killed by the kernel.
type MemoryGroup struct{ dir string }

// NewMemoryGroup makes a control group of version 1 or 2, which ends with the test. It needs root, and fails the
// test where the system has no such groups.
func NewMemoryGroup(t testing.TB, bytes int64) *MemoryGroup {
	t.Helper()
	root, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, limit = "/sys/fs/cgroup", "memory.max"
		// Where this is refused, the file with the limit is missing below.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0)
	}
	dir, err := os.MkdirTemp(root, "zk-lite-test-")
	if err != nil {
		t.Fatalf("making a control group: %v; set %s where that is not permitted", err, UnprivilegedVariable)
	}
	g := &MemoryGroup{dir}
	t.Cleanup(func() {
		// A process that has ended may be in its group for a moment still.
		wait.Succeeds(t, "the control group is empty", func() error { return os.Remove(dir) })
	})
	if err := os.WriteFile(filepath.Join(dir, limit), fmt.Append(nil, bytes), 0); err != nil {
		t.Fatalf("limiting the memory of a control group: %v; set %s where that is not permitted", err,
			UnprivilegedVariable)
	}
	_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0) // version 2, and where there is swap
	return g
}

// Wrap is what to put before a command, so that it runs in the group.
func (g *MemoryGroup) Wrap() []string {
	return []string{"sh", "-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, g.dir}
}

// Highest is the most memory that was in use, in bytes, as the kernel tells it; empty where it does not.
func (g *MemoryGroup) Highest() string {
	for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
		if b, err := os.ReadFile(filepath.Join(g.dir, name)); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	return ""
}
