package cluster_test

import (
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestEnsemble_Life walks through what the kit does to servers.
func TestEnsemble_Life(t *testing.T) {
	e := cluster.Start(t, 3, cluster.Options{})
	c := e.Server(1).Connect(t, cluster.ConnectOptions{})
	if _, err := c.Do(wire.OpCreate, &wire.CreateRequest{
		Path: "/a", Data: []byte("x"), ACL: znode.OpenACL,
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	e.CheckReplicas()
	leader := e.Leader()
	leader.Stop()
	e.Leader()
	leader.Start()
	e.WaitServing()
	e.Followers()[0].Restart()
	e.WaitServing()
	e.KillAll()
	e.StartAll()
	e.WaitServing()
	e.CheckReplicas()
	if znodes := e.Server(2).Dump(t); len(znodes) != 5 {
		t.Errorf("%d znodes, want 5: %v", len(znodes), znodes)
	}
}

// TestStart_Standalone: one server alone.
func TestStart_Standalone(t *testing.T) {
	e := cluster.Start(t, 1, cluster.Options{})
	mode, err := e.Server(1).Mode()
	if err != nil || mode != cluster.ModeStandalone {
		t.Errorf("mode %q, %v", mode, err)
	}
}
