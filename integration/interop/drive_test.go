//go:build interop

package interop_test

import (
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// againstVariable, when it is "zookeeper", puts a real ZooKeeper ensemble in
// the place of zk-lite, which shows whether the checks themselves are right.
const againstVariable = "ZK_LITE_INTEROP_AGAINST"

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// ensemble starts the three servers that clients are run against.
func ensemble(t *testing.T) *cluster.Ensemble {
	t.Helper()
	if os.Getenv(againstVariable) == "zookeeper" {
		return cluster.StartZooKeeper(t, 3, cluster.Options{})
	}
	return cluster.Start(t, 3, cluster.Options{})
}

// atRest starts the killed servers and compares the replicas.
func atRest(t *testing.T, e *cluster.Ensemble) {
	t.Helper()
	e.StartAll()
	e.WaitServing()
	if os.Getenv(againstVariable) == "" {
		e.CheckReplicas()
	}
}

// drive runs a client's program against an ensemble, makes a subtest of each of
// its checks, and compares the replicas.
func drive(t *testing.T, e *cluster.Ensemble, dir string, args ...string) {
	t.Helper()
	e.Drive(t, dir, func(c cluster.Check) {
		t.Run(c.Name, func(t *testing.T) {
			switch {
			case c.Absent:
				t.Log("this client lacks it:", c.Detail)
			case !c.OK:
				t.Errorf("the check failed: %s", c.Detail)
			case c.Detail != "":
				t.Log(c.Detail)
			}
		})
	}, args...)
	atRest(t, e)
}
