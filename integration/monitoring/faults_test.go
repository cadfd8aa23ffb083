//go:build prometheus

package monitoring_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

const (
	mostConnections = 60
	treeBytes       = 8 << 20
	diskBytes       = 1600 << 20 // room for what the rules want free, 1 GiB and two snapshots, and for a log
	fatBytes        = 500_000
	segmentBytes    = 64 << 20 // of the log: what a server has allocated in advance
)

// TestAlerts makes faults to three servers, and waits until the alerts that they should cause fire, and end with them.
func TestAlerts(t *testing.T) {
	var disk string // of server 3
	if cluster.Privileged() {
		disk = t.TempDir()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes)); err != nil {
			t.Fatalf("mounting a small disk: %v; without root set %s=1", err, cluster.UnprivilegedVariable)
		}
		t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	}
	f := &faults{t: t, e: cluster.Start(t, 3, cluster.Options{
		Config: map[string]string{
			"maxCnxns": fmt.Sprint(mostConnections), "limits.treeBytes": fmt.Sprint(treeBytes),
		},
		DataDir: func(id int) string { return map[int]string{3: disk}[id] },
	})}
	f.c = f.connect()
	if err := f.c.EnsurePath(t.Context(), "/load", client.Persistent); err != nil {
		t.Fatal(err)
	}
	stop := f.load()
	defer stop()
	f.p = startPrometheus(t, f.e)
	f.p.check()
	f.p.waitSilent()
	for _, fault := range []func(){
		f.oneDown, f.twoDown, f.paused, f.drained, f.treeFull, f.manyClients, f.restless, func() { f.diskFull(disk) },
	} {
		fault()
	}
	f.p.waitSilent()
	f.removed()
}

type faults struct {
	t *testing.T
	e *cluster.Ensemble
	p *prometheus
	c *client.Client
}

func (f *faults) connect() *client.Client {
	f.t.Helper()
	c, err := client.Connect(f.t.Context(), f.e.ConnectString())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}

// load writes two hundred times a second, whatever comes of it, until stop.
func (f *faults) load() (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	c, ended := f.connect(), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			<-ticker.C
			c.Async().Set(ctx, "/load", []byte("data"), client.AnyVersion)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (f *faults) oneDown() {
	one := f.e.Followers()[0]
	one.Kill()
	f.p.waitFiring("ZkLiteServerDown", "ZkLiteVoterMissing", "ZkLiteNoFailureTolerated")
	one.Start()
	f.e.WaitServing()
	f.p.waitSilent("ZkLiteServerDown", "ZkLiteVoterMissing", "ZkLiteNoFailureTolerated")
}

func (f *faults) twoDown() {
	f.e.KillAll(f.e.Followers()...)
	f.p.waitFiring("ZkLiteNobodyServes", "ZkLiteNotServing")
	f.e.StartAll()
	f.e.WaitServing()
	f.p.waitSilent("ZkLiteNobodyServes", "ZkLiteNotServing")
}

// paused has writes wait for a leader that does nothing.
func (f *faults) paused() {
	leader, followers := f.e.Roles()
	c := followers[0].Connect(f.t, cluster.ConnectOptions{})
	leader.Pause()
	for range 500 {
		c.Send(wire.OpSetData, &wire.SetDataRequest{Path: "/load", Version: znode.AnyVersion})
	}
	f.p.waitFiring("ZkLiteServerDown", "ZkLiteWritesSlow", "ZkLiteWritesOftenSlow")
	leader.Resume()
	f.e.WaitServing()
}

func (f *faults) drained() {
	one := f.e.Followers()[0]
	cluster.ChangeMembers(f.t, one, http.MethodPost, "/drain", "", 0)
	f.p.waitFiring("ZkLiteDrained")
	cluster.ChangeMembers(f.t, one, http.MethodDelete, "/drain", "", 0)
	f.p.waitSilent("ZkLiteDrained")
}

func (f *faults) treeFull() {
	var created []string
	data := bytes.Repeat([]byte("d"), fatBytes)
	for refused := 0; refused < 3; {
		path := fmt.Sprintf("/fat-%d-%d", len(created), refused)
		switch _, _, err := f.c.Create(f.t.Context(), path, data, client.Persistent); {
		case err == nil:
			created = append(created, path)
		case errors.Is(err, client.ErrSystem):
			refused++
		default:
			f.t.Fatal(err)
		}
	}
	f.p.waitFiring("ZkLiteTreeNearlyFull", "ZkLiteWritesRefused")
	for _, path := range created {
		if err := f.c.Delete(f.t.Context(), path, client.AnyVersion); err != nil {
			f.t.Fatal(err)
		}
	}
	f.p.waitSilent("ZkLiteTreeNearlyFull", "ZkLiteWritesRefused")
}

// manyClients come, are too many, and go without a word.
func (f *faults) manyClients() {
	var all []*cluster.Conn
	for range mostConnections + 5 {
		if c, err := cluster.Dial(f.e.Server(1).Addr(), cluster.ConnectOptions{Timeout: time.Second}); err == nil {
			all = append(all, c)
		}
	}
	for _, c := range all {
		c.Drop()
	}
	f.p.waitFiring("ZkLiteClientsRefused", "ZkLiteSessionsExpire")
}

// restless hands leadership over again and again.
func (f *faults) restless() {
	wait.Succeeds(f.t, "an alert about new leaders", func() error {
		leader, followers := f.e.Roles()
		cluster.ChangeMembers(f.t, leader, http.MethodPost, "/transfer", fmt.Sprintf(`{"to": %d}`, followers[0].ID), 0)
		if firing := f.p.firing(); !slices.Contains(firing, "ZkLiteLeaderChanges") {
			return fmt.Errorf("these fire: %v", firing)
		}
		return nil
	})
}

// diskFull takes the room on server 3's disk, and gives it back.
func (f *faults) diskFull(disk string) {
	if disk == "" {
		f.t.Log(cluster.UnprivilegedVariable + " is set: a full disk is NOT TESTED")
		return
	}
	filler := filepath.Join(disk, "filler")
	f.take(filler)
	ctx, cancel := context.WithCancel(f.t.Context())
	data := bytes.Repeat([]byte("d"), fatBytes)
	for range 3 * segmentBytes / fatBytes {
		f.c.Async().Set(ctx, "/load", data, client.AnyVersion)
	}
	f.p.waitFiring("ZkLiteDiskNearlyFull", "ZkLiteDiskFault")
	cancel()
	if err := os.Remove(filler); err != nil {
		f.t.Fatal(err)
	}
	f.p.waitSilent("ZkLiteDiskNearlyFull", "ZkLiteDiskFault")
	f.e.WaitServing()
}

// take makes a file that takes all the room there is.
func (f *faults) take(file string) {
	f.t.Helper()
	out, err := os.Create(file)
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	var at int64
	for n := int64(diskBytes); n > 4096; n /= 2 {
		for syscall.Fallocate(int(out.Fd()), 0, at, n) == nil {
			at += n
		}
	}
}

// removed removes a server from the ensemble, which the server then knows.
func (f *faults) removed() {
	leader, followers := f.e.Roles()
	cluster.ChangeMembers(f.t, leader, http.MethodDelete, fmt.Sprintf("/members/%d", followers[0].ID), "", 0)
	f.p.waitFiring("ZkLiteHalted")
}
