//go:build interop

package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// TestInterop_Mixed lets kazoo at one server see what the Java client has
// written at another, and the other way around, each right after a sync.
func TestInterop_Mixed(t *testing.T) {
	kazoo := cluster.Kazoo(t, "kazoo_mixed.py")
	cluster.NeedTool(t, zkCLI, "zookeeper default-jdk-headless")
	e, dir := ensemble(t), t.TempDir()
	cluster.Execute(t, dir, zkCLI, "-server", e.Server(1).Addr(), "create", "/mixed", "start")
	for round := range 3 {
		java, other := e.Server(round+1).Addr(), e.Server((round+1)%3+1).Addr()
		byJava, byKazoo := fmt.Sprintf("java-%d", round), fmt.Sprintf("kazoo-%d", round)
		cluster.Execute(t, dir, zkCLI, "-server", java, "set", "/mixed", byJava)
		out := cluster.Execute(t, dir, append(slices.Clone(kazoo), other, byKazoo)...)
		if !strings.Contains(out, "read "+byJava) {
			t.Errorf("kazoo printed %q, want %s", out, byJava)
		}
		cluster.Execute(t, dir, zkCLI, "-server", java, "sync", "/mixed")
		if out := cluster.Execute(t, dir, zkCLI, "-server", java, "get", "/mixed"); !strings.Contains(out, byKazoo+"\n") {
			t.Errorf("zkCli.sh printed %q, want %s", out, byKazoo)
		}
	}
	atRest(t, e)
}
