package failover_test

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// drillVariable is how many znodes the drill has; "make drill" sets it to a million.
const drillVariable = "ZK_LITE_TEST_DRILL_ZNODES"

// TestRecover_Drill follows docs/operations.md after the permanent loss of a majority: first with nothing but a backup,
// then with one server of three. It logs how long each step takes.
func TestRecover_Drill(t *testing.T) {
	znodes, err := strconv.Atoi(cmp.Or(os.Getenv(drillVariable), "5000"))
	if err != nil {
		t.Fatal(err)
	}
	step := func(what string, do func()) {
		begin := time.Now()
		do()
		t.Logf("%-45s %6.1f s", what, time.Since(begin).Seconds())
	}
	e := startChecked(t, 3)
	backup := filepath.Join(t.TempDir(), "backup")
	step("a backup is made, without servers", func() { writeBackup(t, backup, znodes) })
	survivor, lost := e.Server(1), e.Servers()[1:]
	for _, s := range e.Servers() {
		s.Kill()
		s.Wipe()
	}
	recoverOne := func(flags ...string) {
		t.Helper()
		step(fmt.Sprint("zk-lite recover ", flags), func() {
			if said, err := survivor.Run("recover", append(flags, "--yes")...); err != nil {
				t.Fatalf("zk-lite recover: %v: %s", err, said)
			}
		})
		step("it is started, and serves", func() {
			survivor.Start()
			e.WaitServing()
		})
		for _, s := range lost {
			step("an empty server is added, and votes", func() { join(t, e, survivor, s) })
		}
		for _, s := range e.Servers() {
			wait.Succeeds(t, "all znodes", func() error {
				if n, err := strconv.Atoi(figure(t, s, "znode_count")); err != nil || n < znodes {
					return fmt.Errorf("server %d has %d znodes, %w", s.ID, n, err)
				}
				return nil
			})
		}
	}
	recoverOne("--from", backup)
	l := startLoad(t, e, "/before-the-loss")
	l.waitProgress(10)
	l.end()
	for _, s := range lost {
		s.Kill()
		s.Wipe()
	}
	survivor.Kill()
	recoverOne()
	l.check()
}

// join takes a server with an empty disk in, and waits until it votes.
func join(t *testing.T, e *cluster.Ensemble, through, s *cluster.Server) {
	t.Helper()
	cluster.ChangeMembers(t, through, http.MethodPost, "/members", fmt.Sprintf(`{"id": %d, "address": %q}`, s.ID, s.PeerAddr()), 0)
	s.Start()
	e.WaitServing()
}

// writeBackup writes a backup of that many znodes with 100 bytes of data each.
func writeBackup(t *testing.T, path string, znodes int) {
	t.Helper()
	m := state.New()
	for i := range znodes {
		b := state.Batch{Origin: state.Origin{Server: 1, Incarnation: 1}, First: uint64(i + 1), Count: 1}
		b.Commands = state.AppendCommand(nil, &state.Command{
			Op: state.OpCreate, Path: fmt.Sprintf("/n%07d", i), Data: make([]byte, 100), ACL: znode.OpenACL,
		})
		entry := state.AppendEntry(nil, time.Now().UnixMilli(), []state.Batch{b})
		if err := m.Apply(uint64(i+1), 1, entry, state.Unobserved{}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Snapshot()
	defer s.Release()
	if err := s.Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
