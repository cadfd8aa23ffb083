//go:build privileged

package failover_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/wire"
)

const (
	// diskBytes holds two segments of the log, the one in use and the next, and
	// room for a third that the test takes away and gives back.
	diskBytes = 208 << 20
	// fatBytes is the size of the writes that fill the log.
	fatBytes = 500_000
)

// smallDisk mounts a file system of its own, which needs root.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes)); err != nil {
		t.Fatalf("mounting a small disk: %v; this test needs root; where that cannot be "+
			"had, set %s=1", err, cluster.UnprivilegedVariable)
	}
	t.Cleanup(func() {
		// Lazily: the servers end after this, in their own cleanup.
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	})
	return dir
}

// fill takes all the room that is left on a disk and returns the file to
// remove.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := bytes.Repeat([]byte("f"), 1<<20); len(block) > 0; {
		_, err := f.Write(block)
		if errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestFailover_DiskFull fills the leader's disk under load. It must stop acknowledging, yield leadership to another,
// report why, and work again, without a restart, when there is room. The others keep serving all the time.
func TestFailover_DiskFull(t *testing.T) {
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return
	}
	disks := []string{smallDisk(t), smallDisk(t), smallDisk(t)}
	e := start(t, 3, cluster.Options{DataDir: func(id int) string { return disks[id-1] }})
	l := startLoad(t, e, "/full")
	l.waitProgress(20)
	victim, followers := e.Roles()
	others := withoutHome(l, victim)
	filler := fill(t, victim.DataDir)
	at := time.Now()
	stop := fatWrites(t, e, followers[0])
	wait.Succeeds(t, "the disk is full and leadership moves", func() error {
		for _, s := range e.Servers() {
			if mode, err := s.Mode(); s != victim && err == nil && mode == cluster.ModeLeader {
				return nil
			}
		}
		return errors.New("no other leader")
	})
	t.Logf("leadership moved %v after the disk was filled", time.Since(at))
	stop()
	others.waitProgress(50)
	gap, _ := others.gap(at)
	t.Logf("nobody got an answer for %v", gap)
	if gap > generousGap {
		t.Errorf("nobody got an answer for %v", gap)
	}
	if !victim.Running() {
		t.Fatalf("server %d has ended", victim.ID)
	}
	if said := victim.Log(); !strings.Contains(said, "no space left") {
		t.Errorf("server %d does not say that its disk is full", victim.ID)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	e.WaitServing()
	l.waitProgress(20)
	l.check()
	e.CheckReplicas()
}

// fatWrites sets a znode to large values until it is stopped.
func fatWrites(t *testing.T, e *cluster.Ensemble, s *cluster.Server) (stop func()) {
	t.Helper()
	c := s.Connect(t, cluster.ConnectOptions{Timeout: sessionTimeout})
	mustCreate(t, c, "/fat", nil)
	ended := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		data := bytes.Repeat([]byte("d"), fatBytes)
		for {
			select {
			case <-ended:
				return
			default:
			}
			_, err := c.Do(wire.OpSetData, &wire.SetDataRequest{Path: "/fat", Data: data, Version: -1})
			if err == nil {
				continue
			}
			next, err := cluster.Dial(s.Addr(), cluster.ConnectOptions{Timeout: sessionTimeout})
			if err == nil {
				c.Drop()
				c = next
			}
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		done.Wait()
		c.Drop()
	})
}

// TestFailover_DiskFull_Alone fills the disk of the only server. It must report that it is not ready, and wait: it once
// was elected twelve times a second, with 84 lines in its log, and was ready all the time.
func TestFailover_DiskFull_Alone(t *testing.T) {
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return
	}
	e := start(t, 1, cluster.Options{DataDir: func(int) string { return smallDisk(t) }})
	s := e.Server(1)
	term := metric(t, s, "raft_term")
	before := strings.Count(s.Log(), "\n")
	filler := fill(t, s.DataDir)
	stop := fatWrites(t, e, s)
	notReady := func() error { return answers(s, "/readyz", http.StatusServiceUnavailable) }
	wait.Succeeds(t, "it is not ready", notReady)
	wait.Steadily(t, "it is not ready, and waits", 2*notice, notReady)
	stop()
	if n := metric(t, s, "raft_term") - term; n != 0 {
		t.Errorf("%d terms", n)
	}
	if said := s.Log(); strings.Count(said, "\n")-before > 20 || !strings.Contains(said, "no space left") {
		t.Errorf("%d lines", strings.Count(said, "\n")-before)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	e.WaitServing()
	mustCreate(t, s.Connect(t, cluster.ConnectOptions{}), "/room", nil)
}
