//go:build interop

package conformance_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// ensembles are both sides, each of three servers.
func ensembles(t *testing.T) (theirs, zklite *cluster.Ensemble) {
	t.Helper()
	return startZooKeeper(t, zookeeper.Oracle), cluster.Start(t, 3, cluster.Options{Quiet: true, Config: settings()})
}

// startZooKeeper starts three servers of a version.
func startZooKeeper(t *testing.T, version string) *cluster.Ensemble {
	t.Helper()
	return cluster.StartZooKeeper(t, 3, cluster.Options{Quiet: true, ZooKeeper: version, Config: settings(),
		JavaFlags: []string{"-Dznode.container.checkIntervalMs=" + never}})
}

// never is a day, in ms: when containers are reaped depends on the clock.
const never = "86400000"

// settings are those of all servers.
func settings() map[string]string {
	return map[string]string{"znode.container.checkIntervalMs": never, "enforceQuota": "true",
		"maxSessionTimeout": fmt.Sprint((longSession * tick).Milliseconds())}
}

// TestConformance_Script compares zk-lite with the oracle over the script of this package's script_*_test.go, and with
// ZooKeeper 3.8 over the part that 3.8 has.
func TestConformance_Script(t *testing.T) {
	theirs, zklite := ensembles(t)
	want := execute(t, theirs, script())
	got := execute(t, zklite, script())
	compare(t, differences(), script(), want, got)
	zklite.CheckReplicas()

	old := execute(t, startZooKeeper(t, zookeeper.V38), olderScript())
	compare(t, olderDifferences(), olderScript(), old, got[:len(old)])
}
