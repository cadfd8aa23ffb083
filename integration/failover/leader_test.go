package failover_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// roundsVariable raises the number of kills, for a long run.
const roundsVariable = "ZK_LITE_TEST_ROUNDS"

func rounds(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv(roundsVariable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q; want a number of rounds", roundsVariable, text)
	}
	return n
}

// TestFailover_LeaderKilledUnderLoad kills the leader with SIGKILL while clients write to all
// three servers, several times. No acknowledged write may be lost, none applied twice, and the
// clients of the survivors must keep their connections. The time without an answer is logged.
func TestFailover_LeaderKilledUnderLoad(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	var gaps, singles []time.Duration
	for round := range rounds(t, 5) {
		l := startLoad(t, e, fmt.Sprintf("/leader-%d", round))
		l.waitProgress(50)
		leader := e.Leader()
		at := time.Now()
		leader.Kill()
		l.waitProgress(50)
		l.end()
		l.checkKept(leader)
		gap, single := l.gap(at)
		gaps, singles = append(gaps, gap), append(singles, single)
		leader.Start()
		e.WaitServing()
		l.check()
		if gap > generousGap {
			t.Errorf("round %d: nobody got an answer for %v", round, gap)
		}
		if t.Failed() {
			break
		}
	}
	e.CheckReplicas()
	report(t, "nobody got an answer", gaps)
	report(t, "a client of a survivor got no answer", singles)
}

// TestFailover_LeaderStoppedUnderLoad stops the leader in good order: it hands
// leadership over.
func TestFailover_LeaderStoppedUnderLoad(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	var gaps []time.Duration
	for round := range rounds(t, 3) {
		l := startLoad(t, e, fmt.Sprintf("/stop-%d", round))
		l.waitProgress(50)
		leader := e.Leader()
		at := time.Now()
		leader.Stop()
		l.waitProgress(50)
		l.end()
		l.checkKept(leader)
		gap, _ := l.gap(at)
		gaps = append(gaps, gap)
		leader.Start()
		e.WaitServing()
		l.check()
		if t.Failed() {
			break
		}
	}
	e.CheckReplicas()
	report(t, "nobody got an answer", gaps)
}

// TestFailover_FollowerKilledUnderLoad: only its own clients notice.
func TestFailover_FollowerKilledUnderLoad(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	l := startLoad(t, e, "/follower")
	l.waitProgress(50)
	follower := e.Followers()[0]
	at := time.Now()
	follower.Kill()
	l.waitProgress(50)
	follower.Start()
	e.WaitServing()
	l.waitProgress(50)
	l.checkKept(follower)
	gap, single := l.gap(at)
	t.Logf("nobody got an answer for %v, a client of a survivor for %v", gap, single)
	l.check()
	e.CheckReplicas()
}

// TestFailover_AllKilledUnderLoad kills all servers at the same moment; when they are back, everything acknowledged is
// there and the clients continue their sessions.
func TestFailover_AllKilledUnderLoad(t *testing.T) {
	e := start(t, 3, cluster.Options{})
	for round := range rounds(t, 2) {
		l := startLoad(t, e, fmt.Sprintf("/all-%d", round))
		l.waitProgress(50)
		e.KillAll()
		e.StartAll()
		e.WaitServing()
		l.waitProgress(50)
		l.check()
		if t.Failed() {
			break
		}
	}
	e.CheckReplicas()
}

// TestFailover_StandaloneKilledUnderLoad: one server has only its disk.
func TestFailover_StandaloneKilledUnderLoad(t *testing.T) {
	e := start(t, 1, cluster.Options{})
	for round := range rounds(t, 2) {
		l := startLoad(t, e, fmt.Sprintf("/alone-%d", round))
		l.waitProgress(50)
		e.KillAll()
		e.StartAll()
		e.WaitServing()
		l.waitProgress(50)
		l.check()
	}
}

func report(t *testing.T, what string, d []time.Duration) {
	t.Helper()
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	t.Logf("%s: %d kills, shortest %v, median %v, longest %v; all: %v",
		what, len(d), d[0], d[len(d)/2], d[len(d)-1], d)
}
