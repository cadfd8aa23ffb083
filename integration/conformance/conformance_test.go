//go:build interop

package conformance_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// ensembles are both sides, each of three servers. Containers are left alone:
// when they are reaped depends on the clock.
func ensembles(t *testing.T) (zookeeper, zklite *cluster.Ensemble) {
	t.Helper()
	never := "86400000" // a day
	longest := fmt.Sprint((longSession * tick).Milliseconds())
	zookeeper = cluster.StartZooKeeper(t, 3, cluster.Options{Quiet: true,
		Config:    map[string]string{"maxSessionTimeout": longest},
		JavaFlags: []string{"-Dznode.container.checkIntervalMs=" + never}})
	zklite = cluster.Start(t, 3, cluster.Options{Quiet: true,
		Config: map[string]string{"znode.container.checkIntervalMs": never, "maxSessionTimeout": longest}})
	return zookeeper, zklite
}

// TestConformance_Script compares the two sides over the script of this
// package's script_*_test.go.
func TestConformance_Script(t *testing.T) {
	zookeeper, zklite := ensembles(t)
	want := execute(t, zookeeper, script())
	got := execute(t, zklite, script())
	compare(t, script(), want, got)
	zklite.CheckReplicas()
}
