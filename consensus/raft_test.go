package consensus

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/zk-lite/zk-lite/consensus/leadership"
	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/consensus/transport/mux"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
)

// readRaftMD returns RAFT.md.
func readRaftMD(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("RAFT.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRaftMD_Versions_AreThoseOfTheModule(t *testing.T) {
	list := readRaftMD(t)
	for name, path := range map[string]string{
		"hashicorp/raft": "github.com/hashicorp/raft",
		"raft-boltdb":    "github.com/hashicorp/raft-boltdb/v2",
	} {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		if want := name + " " + strings.TrimSpace(string(out)); !strings.Contains(list, want) {
			t.Errorf("go.mod has %s, and consensus/RAFT.md was not checked against it: read the file, "+
				"do what it asks for, and write the version there", want)
		}
	}
}

func TestRaftMD_FilesAndTests_Exist(t *testing.T) {
	tests := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(b), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(readRaftMD(t)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		rows++
		files, named := quoted(cells[1]), quoted(cells[3])
		if len(named) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, f := range files {
			if _, err := os.Stat(f); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(cells[0]), err)
			}
		}
		for _, name := range named {
			if !tests[name] {
				t.Errorf("%s: there is no %s", strings.TrimSpace(cells[0]), name)
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows were read", rows)
	}
}

// quoted returns what stands in backquotes.
func quoted(cell string) (all []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestNode_RaftConfig_IsValid(t *testing.T) {
	for _, noPush := range []bool{false, true} {
		for _, timeout := range []time.Duration{testElection, time.Second, 10 * time.Second} {
			n := &Node{cfg: Config{ID: 1, ElectionTimeout: timeout, NoPush: noPush, TrailingLogs: trailingLogs,
				Servers: []membership.Server{{ID: 1}, {ID: 2}}, Listener: mux.NoListener()}}
			n.ctx, n.logger = t.Context(), new(logBuffer).logger()
			c := n.raftConfig()
			if err := raft.ValidateConfig(c); err != nil {
				t.Error(err)
			}
			if c.LeaderLeaseTimeout >= c.HeartbeatTimeout {
				t.Errorf("a lease of %v, with heartbeats every %v", c.LeaderLeaseTimeout, c.HeartbeatTimeout)
			}
			if rare := c.CommitTimeout >= timeout/2; rare == noPush && timeout > time.Second/4 {
				t.Errorf("no push %v: CommitTimeout is %v", noPush, c.CommitTimeout)
			}
		}
	}
}

// loneRaft starts raft alone, in memory, with an FSM.
func loneRaft(t *testing.T, fsm raft.FSM) *raft.Raft {
	t.Helper()
	addr, trans := raft.NewInmemTransport("1")
	c := raft.DefaultConfig()
	c.LocalID, c.LogOutput = "1", io.Discard
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	store := raft.NewInmemStore()
	snapshots := raft.NewInmemSnapshotStore()
	servers := raft.Configuration{Servers: []raft.Server{{ID: "1", Address: addr}}}
	if err := raft.BootstrapCluster(c, store, store, snapshots, trans, servers); err != nil {
		t.Fatal(err)
	}
	r, err := raft.NewRaft(c, fsm, store, store, snapshots, trans)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown().Error(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// releaseFSM notes what raft has noted when it releases a snapshot.
type releaseFSM struct {
	raft     atomic.Pointer[raft.Raft]
	nothing  atomic.Bool
	released atomic.Pointer[string]
}

func (f *releaseFSM) Apply(*raft.Log) any                  { return nil }
func (f *releaseFSM) Restore(in io.ReadCloser) error       { return in.Close() }
func (f *releaseFSM) Persist(sink raft.SnapshotSink) error { return sink.Close() }
func (f *releaseFSM) Release() {
	s := f.raft.Load().Stats()["last_snapshot_index"]
	f.released.Store(&s)
}
func (f *releaseFSM) Snapshot() (raft.FSMSnapshot, error) {
	if f.nothing.Load() {
		return nil, raft.ErrNothingNewToSnapshot
	}
	return f, nil
}

// The token of one snapshot at a time is given back in Release: raft must have noted the snapshot by then.
func TestReliesOn_Snapshot_ReleaseComesLast(t *testing.T) {
	f := &releaseFSM{}
	r := loneRaft(t, f)
	f.raft.Store(r)
	wait.Until(t, "a leader", func() bool { return r.State() == raft.Leader })
	if err := r.Apply([]byte("x"), 0).Error(); err != nil {
		t.Fatal(err)
	}
	f.nothing.Store(true)
	if err := r.Snapshot().Error(); !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		t.Errorf("an FSM without news: %v", err)
	}
	f.nothing.Store(false)
	if err := r.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the snapshot is released", func() bool { return f.released.Load() != nil })
	if at, now := *f.released.Load(), r.Stats()["last_snapshot_index"]; at == "0" || at != now {
		t.Errorf("at its release raft's last snapshot was %s, now it is %s", at, now)
	}
}

// watchLeadership reads raft's state at each observation.
func TestReliesOn_Observer_ReadsWhatHasChanged(t *testing.T) {
	r := loneRaft(t, &releaseFSM{})
	events := make(chan raft.Observation, 64)
	r.RegisterObserver(raft.NewObserver(events, false, func(o *raft.Observation) bool {
		_, leader := o.Data.(raft.LeaderObservation)
		return leader
	}))
	wait.Until(t, "a leader", func() bool { return r.State() == raft.Leader })
	deadline := time.After(wait.Patience)
	for {
		if l := readLeadership(r); l.Leader == 1 && l.Role == leadership.Leader && l.Term > 0 {
			return
		}
		select {
		case <-events:
		case <-deadline:
			t.Fatal("raft leads and has not reported it, or reads otherwise")
		}
	}
}

// The first start knows a store without a term by raft-boltdb's error, and raft itself by its text.
func TestReliesOn_Stable_KeyNotFound(t *testing.T) {
	s, err := storage.Open(storage.Config{Dir: t.TempDir(), Logger: new(logBuffer).logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Stable.GetUint64([]byte("missing"))
	if !errors.Is(err, raftboltdb.ErrKeyNotFound) || err.Error() != "not found" {
		t.Errorf("%v, want %v", err, raftboltdb.ErrKeyNotFound)
	}
}
