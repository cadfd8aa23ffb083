//go:build privileged

package failover_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/integration/cluster/disk"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// refusing has a disk take nothing new in the files that are named.
func refusing(code syscall.Errno, match func(path string) bool) disk.Fault {
	return func(op disk.Op, path string) syscall.Errno {
		if (op == disk.OpWrite || op == disk.OpName) && match(path) {
			return code
		}
		return 0
	}
}

// stableOrLog names the files that a server must write to vote and to follow.
func stableOrLog(path string) bool {
	return inLog(path) || filepath.Base(path) == "raftlog" || filepath.Base(path) == "stable.db"
}

// TestNoRoom_OneServer_OthersGoOn: a server whose disk takes nothing, full or broken, does not lead for long and
// blocks no one: it disconnects its clients, and other servers answer them. The log of the test has the number of
// terms until another leads, and of those while it does.
func TestNoRoom_OneServer_OthersGoOn(t *testing.T) {
	t.Parallel()
	e, _, allowed := onDisks(t, 3, nil)
	if !allowed {
		return
	}
	for i, test := range []struct {
		name  string
		code  syscall.Errno
		match func(string) bool
		leads bool
	}{
		{"the leader's log has no room", syscall.ENOSPC, inLog, true},
		{"the leader's log cannot be written", syscall.EIO, inLog, true},
		{"the leader's disk has no room", syscall.ENOSPC, stableOrLog, true},
		{"a follower's log has no room", syscall.ENOSPC, inLog, false},
		{"a follower's disk has no room", syscall.ENOSPC, stableOrLog, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := startPacedLoad(t, e, fmt.Sprintf("/no-room-%d", i), powerPace)
			l.waitProgress(10)
			victim := e.Leader()
			if !test.leads {
				victim = e.Followers()[0]
			}
			term, at := metric(t, e.Leader(), "raft_term"), time.Now()
			victim.Disk.SetFault(refusing(test.code, test.match))
			var other *cluster.Server
			wait.Succeeds(t, "another server leads", func() error {
				for _, s := range e.Servers() {
					if mode, err := s.Mode(); s != victim && err == nil && mode == cluster.ModeLeader {
						other = s
						return nil
					}
				}
				return errors.New("none")
			})
			then := metric(t, other, "raft_term")
			others := withoutHome(l, victim)
			others.waitProgress(100)
			l.waitProgress(5) // the victim's clients too: it lets them go
			gap, _ := others.gap(at)
			t.Logf("another leads %d terms later; %d terms later still it has gone on; nobody got an answer for %v",
				then-term, metric(t, other, "raft_term")-then, gap)
			if !victim.Running() {
				t.Errorf("server %d has ended", victim.ID)
			}
			victim.Disk.SetFault(nil)
			e.WaitServing()
			l.waitProgress(10)
			l.check()
		})
		if t.Failed() {
			break
		}
	}
	e.CheckReplicas()
}

// TestNoRoom_Election: the leader dies while one of the two that are left cannot write, so that
// there is no majority. Nothing is acknowledged and no server ends; terms may rise meanwhile,
// and room, or the third server, brings everything back.
func TestNoRoom_Election(t *testing.T) {
	t.Parallel()
	e, _, allowed := onDisks(t, 3, nil)
	if !allowed {
		return
	}
	for i, match := range []func(string) bool{inLog, stableOrLog} {
		l := startPacedLoad(t, e, fmt.Sprintf("/election-%d", i), powerPace)
		l.waitProgress(10)
		leader, followers := e.Roles()
		victim, other := followers[0], followers[1]
		term := metric(t, other, "raft_term")
		victim.Disk.SetFault(refusing(syscall.ENOSPC, match))
		leader.Kill()
		wait.Steadily(t, "both run", notice, func() error {
			if !victim.Running() || !other.Running() {
				return errors.New("one has ended")
			}
			return nil
		})
		t.Logf("in %v: %d terms", notice, metric(t, other, "raft_term")-term)
		if i == 0 {
			victim.Disk.SetFault(nil)
		} else {
			leader.Start()
		}
		l.waitProgress(10)
		t.Logf("and %d when it goes on", metric(t, other, "raft_term")-term)
		victim.Disk.SetFault(nil)
		if !leader.Running() {
			leader.Start()
		}
		e.WaitServing()
		l.check()
		e.CheckReplicas()
	}
}

// TestNoRoom_Majority_NobodyIsReady: while the disks of two of three are full there is a leader, and no
// client is answered. So none of the servers is ready, the one with room included.
func TestNoRoom_Majority_NobodyIsReady(t *testing.T) {
	t.Parallel()
	e, _, allowed := onDisks(t, 3, nil)
	if !allowed {
		return
	}
	l := startPacedLoad(t, e, "/majority", powerPace)
	l.waitProgress(10)
	_, followers := e.Roles()
	for _, s := range followers {
		s.Disk.SetFault(refusing(syscall.ENOSPC, inLog))
	}
	for _, s := range e.Servers() {
		wait.Succeeds(t, "none is ready", func() error {
			return answers(s, "/readyz", http.StatusServiceUnavailable)
		})
	}
	for _, s := range followers {
		s.Disk.SetFault(nil)
	}
	e.WaitServing()
	l.waitProgress(10)
	for _, s := range e.Servers() {
		wait.Succeeds(t, "all are ready", func() error { return healthy(s) })
	}
	l.check()
	e.CheckReplicas()
}
