//go:build interop

package interop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// kazooReader prints a znode's data as seen at one server after a sync, and
// writes what the Java client reads next.
const kazooReader = `
import sys
from kazoo.client import KazooClient
c = KazooClient(sys.argv[1])
c.start()
c.sync("/mixed")
print("read", c.get("/mixed")[0].decode())
c.set("/mixed", sys.argv[2].encode())
c.stop()
`

// TestInterop_Mixed lets kazoo at one server see what the Java client has
// written at another, and the other way around, each right after a sync.
func TestInterop_Mixed(t *testing.T) {
	cluster.NeedTool(t, python, "python3")
	cluster.NeedTool(t, zkCLI, "zookeeper default-jdk-headless")
	e, dir := ensemble(t), t.TempDir()
	run(t, dir, zkCLI, "-server", e.Server(1).Addr(), "create", "/mixed", "start")
	for round := range 3 {
		java, kazoo := e.Server(round+1).Addr(), e.Server((round+1)%3+1).Addr()
		byJava, byKazoo := fmt.Sprintf("java-%d", round), fmt.Sprintf("kazoo-%d", round)
		run(t, dir, zkCLI, "-server", java, "set", "/mixed", byJava)
		if out := run(t, dir, python, "-c", kazooReader, kazoo, byKazoo); !strings.Contains(out, "read "+byJava) {
			t.Errorf("kazoo printed %q, want %s", out, byJava)
		}
		run(t, dir, zkCLI, "-server", java, "sync", "/mixed")
		if out := run(t, dir, zkCLI, "-server", java, "get", "/mixed"); !strings.Contains(out, byKazoo+"\n") {
			t.Errorf("zkCli.sh printed %q, want %s", out, byKazoo)
		}
	}
	atRest(t, e)
}
