//go:build privileged

package failover_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/network"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
)

// slowShown is a line of zk-lite slow -o json.
type slowShown struct {
	Server   int                `json:"server"`
	Path     string             `json:"path"`
	Cause    string             `json:"cause"`
	TookMS   float64            `json:"took_ms"`
	StagesMS map[string]float64 `json:"stages_ms"`
}

// showSlow runs zk-lite slow.
func showSlow(e *cluster.Ensemble) (all []slowShown, err error) {
	var urls []string
	for _, s := range e.Servers() {
		urls = append(urls, "http://"+s.HTTPAddr())
	}
	out, err := exec.Command(os.Getenv(cluster.BinaryVariable), "slow", "-o", "json",
		"--http", strings.Join(urls, ","), "--auth", "digest:"+cluster.SuperCredentials).Output()
	for line := range strings.Lines(string(out)) {
		var x slowShown
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		all = append(all, x)
	}
	return all, err
}

// blames writes to a server until zk-lite slow shows such a write with the cause.
func blames(t *testing.T, e *cluster.Ensemble, at *cluster.Server, path, cause string) {
	t.Helper()
	c := at.Connect(t, cluster.ConnectOptions{})
	defer c.Close()
	mustCreate(t, c, path, nil)
	wait.Succeeds(t, "slow with cause "+cause, func() error {
		for range 5 {
			if _, err := c.Do(wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1}); err != nil {
				t.Fatal(err)
			}
		}
		all, err := showSlow(e)
		for _, x := range all {
			if x.Path == path && x.Cause == cause && x.Server == at.ID {
				t.Logf("%.0f ms: %v", x.TookMS, x.StagesMS)
				return nil
			}
		}
		return fmt.Errorf("%v: %+v", err, all)
	})
}

var slowConfig = map[string]string{"logger.slowRequests": "100"}

// TestSlow_Disk_IsNamed: the leader's disk, whether the client is at the leader or at a follower, and with it the
// followers' as the majority's.
func TestSlow_Disk_IsNamed(t *testing.T) {
	t.Parallel()
	e, disks, allowed := onDisks(t, 3, slowConfig)
	if !allowed {
		return
	}
	leader, followers := e.Roles()
	slow := disk.Slow(slowdisk.Profile{Delay: 200 * time.Millisecond}, 1)
	disks[leader.ID-1].SetFault(slow)
	blames(t, e, leader, "/disk-at-leader", "disk")
	blames(t, e, followers[0], "/disk-at-follower", "disk")
	disks[leader.ID-1].SetFault(nil)
	for _, f := range followers {
		disks[f.ID-1].SetFault(slow)
	}
	blames(t, e, leader, "/majority", "majority")
}

// TestSlow_Network_IsNamed: between all servers as the majority's, between one follower and the leader as the network.
func TestSlow_Network_IsNamed(t *testing.T) {
	t.Parallel()
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return
	}
	w := cluster.NewNetwork(t, 3, networkSeed)
	e := start(t, 3, cluster.Options{Network: w, Config: slowConfig})
	leader, followers := e.Roles()
	w.SetBoth(leader.ID, followers[0].ID, network.Link{Delay: 100 * time.Millisecond})
	blames(t, e, followers[0], "/one", "network")
	w.SetServers(network.Link{Delay: 100 * time.Millisecond})
	blames(t, e, leader, "/all", "majority")
}

// TestSlow_Processor_IsNamed: a server whose processor is busy with other programs.
func TestSlow_Processor_IsNamed(t *testing.T) {
	t.Parallel()
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return
	}
	only := fmt.Sprint(runtime.NumCPU() - 1)
	e := start(t, 1, cluster.Options{Config: slowConfig, Wrap: func(int) []string {
		return []string{cluster.NeedTool(t, "/usr/bin/taskset", "util-linux"), "-c", only, "nice", "-n", "19"}
	}})
	for range 4 {
		hog := exec.Command("taskset", "-c", only, "sh", "-c", "while :; do :; done")
		hog.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := hog.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hog.Process.Kill(); _ = hog.Wait() })
	}
	blames(t, e, e.Server(1), "/busy", "processor")
}
