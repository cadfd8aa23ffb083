//go:build privileged

package failover_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/slowdisk"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// once replaces the first sync of a kind of file, and counts.
func once(match func(path string) bool, instead func() syscall.Errno) (disk.Fault, *atomic.Bool) {
	var done atomic.Bool
	return func(op disk.Op, path string) syscall.Errno {
		if op == disk.OpSync && match(path) && done.CompareAndSwap(false, true) {
			return instead()
		}
		return 0
	}, &done
}

func broken() syscall.Errno { return syscall.EIO }

// TestSync_LogFailsOnce: after one failed sync of its log no one knows what is on a server's
// disk. It must end, with an error that gives the reason, whatever the next sync returns; the
// others continue, and it restarts with its state, also when the power goes in between.
func TestSync_LogFailsOnce(t *testing.T) {
	t.Parallel()
	e, _, allowed := onDisks(t, 3, nil)
	if !allowed {
		return
	}
	for round, name := range []string{"leader", "follower", "leader, then a power cut"} {
		l := startPacedLoad(t, e, fmt.Sprintf("/eio-%d", round), powerPace)
		l.waitProgress(20)
		victim := e.Leader()
		if name == "follower" {
			victim = e.Followers()[0]
		}
		before := len(victim.Log())
		end := victim.FailLogSync()
		if err := victim.WaitEnd(); err == nil {
			t.Errorf("%s: server %d ended with exit code 0", name, victim.ID)
		}
		said := victim.Log()[before:]
		if !strings.Contains(said, syscall.EIO.Error()) || strings.Contains(said, "panic:") {
			t.Errorf("%s: server %d says:\n%s", name, victim.ID, said)
		}
		l.waitProgress(20)
		if strings.HasSuffix(name, "cut") {
			victim.PowerCut()
		}
		if !end() {
			t.Error("no sync has failed, and it has ended")
		}
		victim.Start()
		e.WaitServing()
		l.waitProgress(20)
		l.check()
		e.CheckReplicas()
		if t.Failed() {
			break
		}
	}
}

// TestSync_VoteFailsOnce: a sync of the file with term and vote fails. The server exits, and reports why; restarted
// after a power cut, it takes part as before, and nothing is lost.
func TestSync_VoteFailsOnce(t *testing.T) {
	t.Parallel()
	e, _, allowed := onDisks(t, 3, nil)
	if !allowed {
		return
	}
	l := startPacedLoad(t, e, "/vote", powerPace)
	l.waitProgress(20)
	leader, followers := e.Roles()
	victim := followers[0]
	fault, done := once(func(path string) bool { return filepath.Base(path) == "stable.db" }, broken)
	victim.Disk.SetFault(fault)
	before := len(victim.Log())
	leader.Kill()
	wait.Succeeds(t, "the vote is written", func() error {
		if !done.Load() {
			return fmt.Errorf("no sync of it")
		}
		return nil
	})
	leader.Start()
	if !comesBack(t, victim) {
		said := victim.Log()[before:]
		t.Logf("server %d ended: %s", victim.ID, lastLine(said))
		if !strings.Contains(said, syscall.EIO.Error()) || strings.Contains(said, "panic:") {
			t.Errorf("server %d says:\n%s", victim.ID, said)
		}
		victim.Disk.SetFault(nil)
		victim.PowerCut()
		victim.Start()
	}
	e.WaitServing()
	l.waitProgress(20)
	l.check()
	e.CheckReplicas()
}

// TestSync_SnapshotFails: a server that cannot write a snapshot keeps its log, and keeps serving.
func TestSync_SnapshotFails(t *testing.T) {
	t.Parallel()
	e, disks, allowed := onDisks(t, 3, map[string]string{"snapCount": "100"})
	if !allowed {
		return
	}
	var failed atomic.Int64
	for _, d := range disks {
		d.SetFault(func(op disk.Op, path string) syscall.Errno {
			if op == disk.OpSync && strings.Contains(path, "/snapshots/") {
				failed.Add(1)
				return syscall.EIO
			}
			return 0
		})
	}
	l := startPacedLoad(t, e, "/snapshot", powerPace)
	wait.Succeeds(t, "snapshots fail", func() error {
		if n := failed.Load(); n < 3 {
			return fmt.Errorf("%d have failed", n)
		}
		return nil
	})
	l.waitProgress(20)
	l.checkKept()
	e.PowerCut()
	for _, d := range disks {
		d.SetFault(nil)
	}
	e.StartAll()
	e.WaitServing()
	l.waitProgress(20)
	l.check()
	e.CheckReplicas()
}

// TestSync_StandsStill: a disk that hangs for two seconds costs only time; while one hangs for longer than a server's
// patience, the others lead.
func TestSync_StandsStill(t *testing.T) {
	t.Parallel()
	e, _, allowed := onDisks(t, 3, nil)
	if !allowed {
		return
	}
	l := startPacedLoad(t, e, "/still", powerPace)
	l.waitProgress(20)
	standsStill := func(d time.Duration) {
		leader := e.Leader()
		at := time.Now()
		fault, done := once(inLog, func() syscall.Errno { <-time.After(d); return 0 })
		leader.Disk.SetFault(fault)
		l.waitProgress(20)
		gap, _ := l.gap(at)
		t.Logf("the leader's disk stood still for %v (%v): nobody got an answer for %v", d, done.Load(), gap)
		wait.Succeeds(t, "the disk moves again", func() error {
			if time.Since(at) < d {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		leader.Disk.SetFault(nil)
		e.WaitServing()
	}
	standsStill(2 * time.Second)
	standsStill(12 * time.Second)
	l.check()
	e.CheckReplicas()
}

// TestSync_Slow: the leader is killed while all disks are slow, or a follower's disk is slower than the others; then
// the power fails. It costs only time.
func TestSync_Slow(t *testing.T) {
	t.Parallel()
	e, disks, allowed := onDisks(t, 3, nil)
	if !allowed {
		return
	}
	for i, p := range slowdisk.Profiles() {
		leader, followers := e.Roles()
		for k, d := range disks {
			if i%4 < 2 || d == followers[0].Disk { // every other pair of profiles: all, or one among fast ones
				d.SetFault(disk.Slow(p, uint64(10*i+k)))
			}
		}
		l := startPacedLoad(t, e, fmt.Sprintf("/slow-%d", i), powerPace)
		l.waitProgress(5)
		at := time.Now()
		leader.Kill()
		l.waitProgress(5)
		gap, _ := l.gap(at)
		t.Logf("syncs of %v, on one disk %v: nobody got an answer for %v", p, i%4 >= 2, gap)
		leader.Start()
		e.PowerCut()
		for _, d := range disks {
			d.SetFault(nil)
		}
		e.StartAll()
		e.WaitServing()
		l.waitProgress(5)
		l.check()
		if t.Failed() {
			break
		}
	}
	e.CheckReplicas()
}
