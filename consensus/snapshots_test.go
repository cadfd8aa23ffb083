package consensus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// A snapshot that cannot be written is reported until one can; the time of the newest is known after a restart.
func TestSnapshots_FaultAndTime(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 1, func(c *Config) { c.SnapshotCommands = 20 })
	x := e.nodes[0]
	dir := filepath.Join(x.dir, "snapshots")
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(dir, dir+"-away")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e.must(0, "/a")
	e.fill(0, "/a", 50)
	wait.Until(t, "the fault is reported", func() bool { return x.Status().SnapshotFault != "" })
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	move(dir+"-away", dir)
	e.must(0, "/b")
	e.fill(0, "/b", 50)
	wait.Until(t, "a snapshot is written", func() bool {
		return x.Status().SnapshotFault == "" && x.Node.snapshots.last.Load() > 0
	})
	last := x.Node.snapshots.last.Load()
	e.stop(0)
	e.mustStart(0)
	if now := e.nodes[0].Node.snapshots.last.Load(); now < last {
		t.Errorf("the newest snapshot is of %d, and was of %d", now, last)
	}
}
