package consensus

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/zk-lite/zk-lite/consensus/selfcheck"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// testCheck is often, so that tests are short.
func testCheck(c *Config) { c.CheckInterval = 50 * time.Millisecond }

// flip changes a byte of a znode's data in servers' memories, as broken ones would, for all readers.
func (e *testEnsemble) flip(path string, by map[int]byte) {
	e.t.Helper()
	wait.Until(e.t, "all servers have applied the same", func() bool { return e.tryFlip(path, by) })
}

// tryFlip flips where all servers have applied the same: each later digest is then of all changed states. Otherwise one
// could be of the first of two, which would be halted alone.
//
//go:norace
func (e *testEnsemble) tryFlip(path string, by map[int]byte) bool {
	for _, x := range e.nodes {
		x.handler.mu.Lock()
		defer x.handler.mu.Unlock()
		if x.handler.machine.Index() != e.nodes[0].handler.machine.Index() {
			return false
		}
	}
	for i, bits := range by {
		data, _, code := e.nodes[i].handler.machine.Tree().Get(path, []znode.ID{znode.SuperIDs})
		if code != znode.OK || len(data) == 0 {
			e.t.Fatalf("%s: data %q (%v), want some", path, data, code)
		}
		data[0] ^= bits
	}
	return true
}

// waitEqual waits until a majority had a server's state after all that was applied. It writes, since of what comes in
// a snapshot there is no digest; a snapshot may also hide the results.
func (e *testEnsemble) waitEqual(i int) {
	e.t.Helper()
	at := e.nodes[i].applied.Index.Load()
	wait.Until(e.t, "equal states", func() bool {
		e.await("a write", e.propose(i, create(fmt.Sprintf("/equal-%d-%d", i, e.nodes[i].applied.Index.Load()))))
		return e.metric(i, "check_last_index") >= int64(at)
	})
}

// metric is a server's metric that is a number.
func (e *testEnsemble) metric(i int, key string) int64 {
	for _, m := range e.nodes[i].Metrics() {
		if m.Key == key {
			return m.Value.(int64)
		}
	}
	e.t.Fatalf("there is no metric %s", key)
	return 0
}

// allEqual is waitEqual of all that run. The states are never looked at one after the other, since digests go on.
func (e *testEnsemble) allEqual() {
	e.t.Helper()
	for i, x := range e.nodes {
		if x.Node != nil {
			e.waitEqual(i)
		}
	}
}

// waitAlarm waits until a server reports how the servers differ.
func (e *testEnsemble) waitAlarm(i int, words ...string) {
	e.t.Helper()
	wait.Until(e.t, fmt.Sprintf("server %d: an alarm with %q", i, words), func() bool {
		alarm := e.nodes[i].Status().Alarm
		for _, w := range words {
			if !strings.Contains(alarm, w) {
				return false
			}
		}
		return alarm != ""
	})
}

func (e *testEnsemble) noHalt() {
	e.t.Helper()
	for i, x := range e.nodes {
		if s := x.Status(); s.Halt != nil || s.Alarm != "" {
			e.t.Errorf("server %d: %+v, alarm %q", i, s.Halt, s.Alarm)
		}
	}
}

// A server in whose memory one byte has flipped is halted, follower or leader, and the others serve on. What is equal
// gives no alarm.
func TestCheck_FlippedByte(t *testing.T) {
	tier.Seconds(t)
	for name, which := range map[string]func(leader int) int{
		"follower": func(leader int) int { return (leader + 1) % 3 },
		"leader":   func(leader int) int { return leader },
	} {
		t.Run(name, func(t *testing.T) {
			e := newTestEnsemble(t, 3, testCheck)
			leader := e.leader()
			e.must(leader, "/a")
			e.must(leader, "/b")
			for i := range 3 {
				e.waitEqual(i)
			}
			e.noHalt()
			bad := which(leader)
			good := (bad + 1) % 3
			e.flip("/a", map[int]byte{bad: 1})
			e.must(good, "/c")
			e.waitHalted(bad, selfcheck.Diverged, fmt.Sprintf("the state of server %d differs", bad), "it was the same after entry")
			e.waitAlarm(good, fmt.Sprintf("server %d is halted: diverged", bad))
			e.must(good, "/d")
			e.waitEqual(good)
			e.stop(bad)
			e.mustStart(bad)
			e.waitHalted(bad, selfcheck.Diverged, "it was the same after entry")
		})
	}
}

// Where no majority has the same state no one can tell which server is wrong: all continue to
// serve, and report it.
func TestCheck_NoMajority(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, testCheck)
	leader := e.leader()
	e.must(leader, "/a")
	e.allEqual()
	e.flip("/a", map[int]byte{leader: 1, (leader + 1) % 3: 2})
	e.must(leader, "/b")
	for i := range 3 {
		e.waitAlarm(i, "no majority of the servers has the same state")
		e.must(i, fmt.Sprint("/c", i))
		if h := e.nodes[i].Status().Halt; h != nil {
			t.Errorf("server %d: %+v", i, h)
		}
	}
}

// copyDir copies a stopped server's directory to a place of its own.
func (e *testEnsemble) copyDir(i int) string {
	e.t.Helper()
	to := filepath.Join(e.t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(e.nodes[i].dir)); err != nil {
		e.t.Fatal(err)
	}
	return to
}

// oldCopies stops the ensemble, copies directories, lets it write on, stops it again, and puts the copies in place.
func (e *testEnsemble) oldCopies(which ...int) {
	e.t.Helper()
	e.waitFormed()
	e.must(0, "/before")
	e.allEqual()
	stop := func() { // those first, so that the others have all that is committed without them
		for _, i := range which {
			e.stop(i)
		}
		for i := range e.nodes {
			e.stop(i)
		}
	}
	stop()
	old := map[int]string{}
	for _, i := range which {
		old[i] = e.copyDir(i)
	}
	for i := range e.nodes {
		e.mustStart(i)
	}
	e.fill(0, "/lost-", 30)
	for i := range e.nodes { // as each server does at its start, which publishes its addresses
		e.must(i, fmt.Sprint("/started-", i))
	}
	e.allEqual()
	stop()
	for i, dir := range old {
		e.nodes[i].dir = dir
	}
}

// patient starts a server that waits for the others' answers for as long as it takes. One that judges after an election
// timeout may have heard of too few, and takes part until it has.
func (e *testEnsemble) patient(i int) {
	e.t.Helper()
	before := e.change
	e.change = func(c *Config) { before(c); c.ElectionTimeout = wait.Patience }
	e.mustStart(i)
	e.change = before
}

// Two of three data directories are put back and make another history: the third one does not join, and says why.
func TestCheck_TwoOfThreePutBack(t *testing.T) {
	tier.Seconds(t)
	for _, written := range []int{0, 10, 50} { // by the two: less, or more, than the third has
		t.Run(fmt.Sprint(written), func(t *testing.T) {
			e := newTestEnsemble(t, 3, testCheck)
			e.oldCopies(0, 1)
			e.mustStart(0)
			e.mustStart(1)
			e.fill(0, "/other-", written)
			e.must(1, "/last")
			e.patient(2)
			e.waitHalted(2, selfcheck.Forked, "server 2", "the majority may lack writes")
			if written > 0 {
				e.waitHalted(2, selfcheck.Forked, "the history of server 2 differs from that of servers [0 1]",
					"they are the same up to entry")
			}
			e.waitAlarm(0, "server 2 is halted: forked")
			e.waitAlarm(1, "server 2 is halted: forked")
			e.must(0, "/goes-on")
			e.stop(2)
			e.mustStart(2)
			e.waitHalted(2, selfcheck.Forked)
		})
	}
}

// A third server that runs when two are put back learns of it while it runs.
func TestCheck_ThirdIsUpFirst(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, testCheck)
	e.oldCopies(0, 1)
	e.patient(2) // nor does it stand for election, which it could win, with the longer log
	e.net.setCut(2, true)
	e.mustStart(0)
	e.mustStart(1)
	e.fill(0, "/other-", 40)
	e.net.setCut(2, false)
	e.waitHalted(2, selfcheck.Forked)
	e.must(1, "/goes-on")
}

// One old directory, of three or five: that server has forgotten its votes, and does not join.
func TestCheck_OnePutBack(t *testing.T) {
	tier.Seconds(t)
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := newTestEnsemble(t, n, testCheck)
			e.oldCopies(1)
			for i := range n {
				if i != 1 {
					e.mustStart(i)
				}
			}
			e.must(0, "/while-it-is-down")
			e.allEqual()
			e.mustStart(1)
			e.waitHalted(1, selfcheck.Forked, "the data directory of server 1 is an old copy", "add it again")
			e.must(0, "/goes-on")
			e.waitAlarm(0, "server 1 is halted: forked")
		})
	}
}

// All start at once: the old one learns it from the log.
func TestCheck_OnePutBack_AllStartAtOnce(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, testCheck)
	e.oldCopies(1)
	e.mustStart(1)
	e.mustStart(0)
	e.mustStart(2)
	e.waitHalted(1, selfcheck.Forked, "old copy")
	e.must(0, "/goes-on")
}

// Stops, kills, snapshots and leaders that change are no reason for an alarm.
func TestCheck_HonestRestarts_NoAlarm(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, func(c *Config) {
		testCheck(c)
		c.SnapshotCommands, c.TrailingLogs = 20, 5
	})
	e.waitFormed()
	for round := range 6 {
		e.fill(round%3, fmt.Sprintf("/r%d-", round), 30)
		i := (round + 1) % 3
		if round%2 == 0 {
			e.crash(i)
		} else {
			e.stop(i)
		}
		e.fill((i+1)%3, fmt.Sprintf("/s%d-", round), 40) // it will need a snapshot
		e.mustStart(i)
		e.waitEqual(i)
		e.noHalt()
	}
	for i := range 3 {
		e.stop(i)
	}
	for i := range 3 {
		e.mustStart(i)
	}
	e.must(0, "/end")
	e.waitEqual(0)
	e.noHalt()
}

// Two old copies that learn of it at once do not both leave: the ensemble would have no majority.
func TestCheck_TwoOldCopies_AMajorityStays(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, testCheck)
	e.oldCopies(0, 1)
	e.mustStart(0)
	e.mustStart(1)
	e.patient(2)
	for _, i := range []int{0, 1} { // as if each had found in the log what it has forgotten
		e.nodes[i].check.NoteLife(e.nodes[i].queue.OriginApplying().Incarnation - 1)
	}
	e.must(0, "/goes-on")
	for _, i := range []int{0, 1} {
		e.waitAlarm(i, "takes part all the same")
	}
	e.must(1, "/still")
}

// Members that are added, observers, and disks that are lost in permitted ways are no reason for an alarm.
func TestCheck_Members_NoAlarm(t *testing.T) {
	tier.Seconds(t)
	e := prepare(t, 4, testCheck)
	e.servers[3].Voter = false
	for i := range 4 {
		e.mustStart(i)
	}
	e.waitFormed()
	e.fill(0, "/a", 30)
	e.stop(3)
	e.wipe(3)
	e.mustStart(3)
	e.must(3, "/observer")
	added := e.room()
	e.mustStart(added)
	e.add(0, added)
	e.must(added, "/added")
	e.removeWiped(0, 2)
	e.mustStart(2)
	e.add(0, 2)
	e.waitVoters(0, 1, 2, state.ServerID(added))
	for i := range e.nodes {
		e.must(i, fmt.Sprint("/b", i))
		e.waitEqual(i)
	}
	e.noHalt()
	if got := e.nodes[2].check.Record.Voters(); !slices.Equal(got, []state.ServerID{0, 1, 2, state.ServerID(added)}) {
		t.Errorf("voters %v", got)
	}
}

// A backup that is restored replaces the tree, not the history.
func TestCheck_Restore_NoAlarm(t *testing.T) {
	tier.Seconds(t)
	e := newTestEnsemble(t, 3, func(c *Config) {
		testCheck(c)
		c.SnapshotCommands, c.TrailingLogs = 20, 5
	})
	e.fill(e.leader(), "/a", 10)
	h := e.nodes[0].handler
	wait.Until(t, "all of it on server 0", func() bool { return h.exists("/a9") })
	h.mu.Lock()
	s := h.machine.Snapshot()
	h.mu.Unlock()
	s.OnlyState()
	var file bytes.Buffer
	if err := s.Write(&file); err != nil {
		t.Fatal(err)
	}
	s.Release()
	e.fill(1, "/b", 30)
	for _, c := range []*state.Command{
		{Op: state.OpRestore, Data: file.Bytes(), Restore: state.RestoreCommand{Upload: 1}},
		{Op: state.OpRestore, Restore: state.RestoreCommand{
			Step: state.RestoreCommit, Upload: 1, Part: 1, Sum: xxhash.Sum64(file.Bytes()), Replace: true,
		}},
	} {
		if o := e.await("a restore", e.propose(0, c)); o.lost || o.Code != znode.OK {
			t.Fatalf("lost %v, %v", o.lost, o.Code)
		}
	}
	e.stop(2)
	e.fill(1, "/c", 30) // a snapshot is sent
	e.mustStart(2)
	for i := range 3 {
		e.waitEqual(i)
		if h := e.nodes[i].handler; h.exists("/b0") || !h.exists("/a0") {
			t.Errorf("server %d: nothing was restored", i)
		}
	}
	e.noHalt()
}

// A standalone server has no other to compare itself with.
func TestCheck_Standalone(t *testing.T) {
	e := newTestEnsemble(t, 1, testCheck)
	for round := range 3 {
		e.fill(0, fmt.Sprintf("/r%d-", round), 3)
		e.stop(0)
		e.mustStart(0)
	}
	e.must(0, "/end")
	if d := e.nodes[0].check.Record.Digests(); len(d) > 0 {
		t.Errorf("it has taken %d digests for nobody", len(d))
	}
	e.noHalt()
}
