//go:build privileged

package failover_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

const (
	// powerSeed is for what power cuts take and when they come.
	powerSeed = 1
	powerPace = time.Millisecond
)

// onDisks starts n servers on disks that can fail, and returns false where the machine's owner has forbidden this.
func onDisks(t *testing.T, n int, config map[string]string) (*cluster.Ensemble, []*disk.Disk, bool) {
	t.Helper()
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return nil, nil, false
	}
	disks := cluster.NewDisks(t, n, powerSeed)
	return start(t, n, cluster.Options{Disks: disks, Config: config}), disks, true
}

// briefly waits for a random time below most, while the clients work.
func briefly(t *testing.T, rng *rand.Rand, most time.Duration) {
	t.Helper()
	wait.Steadily(t, "the clients work", time.Duration(rng.Int64N(int64(most))),
		func() error { return nil })
}

// TestPower_AllCutUnderLoad_LosesNothing cuts the power of all servers at once, and of one after the other, at random
// moments under load. Unsynced writes are lost, or a random part of them; acknowledged ones must not be.
func TestPower_AllCutUnderLoad_LosesNothing(t *testing.T) {
	t.Parallel()
	if e, disks, allowed := onDisks(t, 3, map[string]string{"snapCount": "200"}); allowed {
		cutUnderLoad(t, e, disks, 6)
	}
}

// TestPower_Ext4_AllCutUnderLoad_LosesNothing is the same with the log written past the page
// cache, which only a file system of the kernel's can do: it must ask its disk for all that
// the log relies on.
func TestPower_Ext4_AllCutUnderLoad_LosesNothing(t *testing.T) {
	t.Parallel()
	if !cluster.Privileged() {
		t.Logf("%s is set: NOT RUN", cluster.UnprivilegedVariable)
		return
	}
	disks := cluster.NewExt4Disks(t, 3, powerSeed)
	e := start(t, 3, cluster.Options{Disks: disks, Config: map[string]string{"snapCount": "200"}})
	for _, s := range e.Servers() {
		checkDirect(t, s.PID())
	}
	checkParked(t, e)
	cutUnderLoad(t, e, disks, 4)
}

// checkDirect sees to it that a process has a log segment open for direct writes.
func checkDirect(t *testing.T, pid int) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		name, _ := os.Readlink(fd)
		info, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(fd)), "fdinfo", filepath.Base(fd)))
		var pos, flags int
		_, err := fmt.Sscanf(string(info), "pos:\t%d\nflags:\t%o", &pos, &flags)
		if err == nil && filepath.Ext(name) == ".seg" && flags&syscall.O_DIRECT != 0 {
			return
		}
	}
	t.Fatalf("process %d has no log segment open with O_DIRECT", pid)
}

// checkParked checks that followers have contexts of the kernel's asynchronous I/O, and the leader has none: when it is
// killed the kernel would end that before it closes the connections, by which the others notice.
func checkParked(t *testing.T, e *cluster.Ensemble) {
	t.Helper()
	l := startPacedLoad(t, e, "/parked", powerPace)
	l.waitProgress(10)
	wait.Succeeds(t, "followers have contexts for their logs, the leader has none", func() error {
		leader := e.Leader()
		for _, s := range e.Servers() {
			maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.PID()))
			if err != nil {
				return err
			}
			if has := bytes.Contains(maps, []byte("[aio]")); has != (s != leader) {
				return fmt.Errorf("server %d: %v, the leader is %d", s.ID, has, leader.ID)
			}
		}
		return nil
	})
	l.check()
}

func cutUnderLoad(t *testing.T, e *cluster.Ensemble, disks []*disk.Disk, most int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(powerSeed, 1))
	for round := range rounds(t, most) {
		l := startPacedLoad(t, e, fmt.Sprintf("/power-%d", round), powerPace)
		l.waitProgress(10 + rng.IntN(40))
		briefly(t, rng, 300*time.Millisecond)
		var lost disk.Loss
		if round%3 == 2 {
			for _, s := range e.Servers() {
				one := s.PowerCut()
				lost.Pages, lost.Names = lost.Pages+one.Pages, lost.Names+one.Names
				briefly(t, rng, 300*time.Millisecond)
			}
		} else {
			lost = e.PowerCut()
		}
		t.Logf("round %d: lost %+v", round, lost)
		e.StartAll()
		e.WaitServing()
		l.waitProgress(10)
		l.check()
		if t.Failed() {
			break
		}
	}
	e.CheckReplicas()
	lost := 0
	for i, d := range disks {
		c := d.Counts()
		lost += c.LostPages
		t.Logf("disk %d: %+v", i+1, c)
	}
	if lost == 0 {
		t.Error("no power cut has taken anything, so nothing was shown")
	}
}

// TestPower_EveryDiskLies_IsNoticed is the control of the test before: with disks that acknowledge writes that they
// have not made, the test must see acknowledged writes lost.
func TestPower_EveryDiskLies_IsNoticed(t *testing.T) {
	t.Parallel()
	e, disks, allowed := onDisks(t, 3, nil)
	if !allowed {
		return
	}
	l := startPacedLoad(t, e, "/lies", powerPace)
	var mu sync.Mutex
	var wrong []string
	l.report = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		wrong = append(wrong, fmt.Sprintf(format, args...))
	}
	l.waitProgress(10)
	for _, d := range disks {
		d.SetLying(true)
	}
	l.waitProgress(50)
	l.end() // their sessions may be among the losses
	e.PowerCut()
	for _, d := range disks {
		d.SetLying(false)
	}
	e.StartAll()
	e.WaitServing()
	l.check()
	lost := 0
	for _, what := range wrong {
		if strings.Contains(what, "was acknowledged and is") {
			lost++
		}
	}
	t.Logf("%d acknowledged creates are noticed to be lost on the three servers", lost)
	if lost == 0 {
		t.Error("every disk lied, and nobody has noticed that anything is lost")
	}
}

// TestPower_OneDiskLies cuts the power of one server whose disk lies, while the two others work and keep running until
// it is back. No more can be promised: the other two have what it has acknowledged, or one of them, which then wins the
// election. It catches up, or finds that its log is damaged and refuses to start; then it is replaced.
func TestPower_OneDiskLies(t *testing.T) {
	t.Parallel()
	e, _, allowed := onDisks(t, 3, map[string]string{"snapCount": "200"})
	if !allowed {
		return
	}
	rng := rand.New(rand.NewPCG(powerSeed, 2))
	for round := range rounds(t, 4) {
		l := startPacedLoad(t, e, fmt.Sprintf("/liar-%d", round), powerPace)
		l.waitProgress(10)
		liar := e.Leader()
		if round%2 == 1 {
			liar = e.Followers()[0]
		}
		liar.Disk.SetLying(true)
		l.waitProgress(30)
		briefly(t, rng, 300*time.Millisecond)
		lost := liar.PowerCut()
		liar.Disk.SetLying(false)
		l.waitProgress(10)
		t.Logf("round %d: server %d lost %+v", round, liar.ID, lost)
		before := len(liar.Log())
		liar.Start()
		if !comesBack(t, liar) {
			t.Logf("it refuses: %s", lastLine(liar.Log()[before:]))
			replace(t, e, liar)
		}
		e.WaitServing()
		l.waitProgress(10)
		l.check()
		e.CheckReplicas()
		if t.Failed() {
			break
		}
	}
}

// comesBack waits until a server that was started serves, and returns false if it ends
// instead, or is halted: a disk that has lied is no different from one that was put back.
func comesBack(t *testing.T, s *cluster.Server) (serves bool) {
	t.Helper()
	var r readiness
	const forked = "halted: forked"
	wait.Succeeds(t, fmt.Sprintf("server %d serves or ends", s.ID), func() error {
		if !s.Running() {
			return nil
		}
		if r, _ = askReady(s); r.Status == forked {
			return nil
		}
		_, err := s.Mode()
		serves = err == nil
		return err
	})
	if r.Status == forked {
		t.Logf("server %d is halted: %s", s.ID, r.Reason)
		s.Kill()
		return false
	}
	if !serves && s.WaitEnd() == nil {
		t.Errorf("server %d ended with exit code 0", s.ID)
	}
	return serves
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// replace gives a server that is down a new disk and its place again.
func replace(t *testing.T, e *cluster.Ensemble, s *cluster.Server) {
	t.Helper()
	cluster.ChangeMembers(t, e.Leader(), http.MethodDelete, fmt.Sprintf("/members/%d?force=true", s.ID), "",
		http.StatusNotFound)
	s.Wipe()
	s.Start()
	cluster.ChangeMembers(t, e.Leader(), http.MethodPost, "/members",
		fmt.Sprintf(`{"id": %d, "address": %q}`, s.ID, s.PeerAddr()), http.StatusOK)
}

// inLog reports whether a path below a disk's root is raft's log.
func inLog(path string) bool { return filepath.Base(filepath.Dir(path)) == "raftlog" }
