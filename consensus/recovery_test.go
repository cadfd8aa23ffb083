package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/membership"
	"github.com/zk-lite/zk-lite/consensus/recovery"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/znode"
)

// ask opens the files of a server that does not run, and asks the others.
func (e *testEnsemble) ask(i int) (*recovery.Recovery, []membership.Peer) {
	e.t.Helper()
	r, err := recovery.Open(e.files(i), e.servers[i].ID, nil, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), wait.Patience)
	defer cancel()
	return r, r.Ask(ctx, membership.Asker{Self: e.servers[i].ID, Dial: e.net.dial(i)}, e.servers)
}

func (e *testEnsemble) files(i int) storage.Config {
	return storage.Config{Dir: e.nodes[i].dir, Logger: slog.New(slog.DiscardHandler)}
}

func (x *testNode) zxid() znode.Zxid {
	x.handler.mu.RLock()
	defer x.handler.mu.RUnlock()
	return x.handler.machine.Zxid()
}

// Two of three are lost. The third goes on with what it has, above all that they can have shown to clients; they
// cannot come back with their old directories, but as new members.
func TestRecovery_TwoOfThreeLost(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/kept")
	e.waitFormed()
	wait.Until(t, "the write on the survivor", func() bool { return e.nodes[0].handler.exists("/kept") })
	before, former := e.nodes[0].zxid(), e.nodes[0].ensemble.Identity().Ensemble
	e.stop(0)

	r, peers := e.ask(0)
	if !r.Majority(peers) || len(peers) != 2 || !peers[0].Member || !peers[1].Member {
		t.Errorf("two others run: %+v; want a majority", peers)
	}
	e.stop(1)
	if r, peers = e.ask(0); !r.Majority(peers) {
		t.Errorf("one other runs, a majority with this one: %+v", peers)
	}
	e.stop(2)
	if r, peers = e.ask(0); r.Majority(peers) || peers[0].Err == nil {
		t.Errorf("nobody else runs: %+v", peers)
	}
	x := r.Report()
	if x.Ensemble != former || len(x.Voters) != 3 || x.Index == 0 || x.Zxid < before || time.Since(x.Time) > time.Hour {
		t.Errorf("report %+v, want 3 voters of ensemble %v, written now, zxid %s or later", x, former, before)
	}
	id, kept, err := r.Run(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"identity.json", "stable.db", "raftlog", "snapshots"} {
		if _, err := os.Stat(filepath.Join(e.nodes[0].dir, kept, name)); err != nil {
			t.Error(err)
		}
	}

	e.mustStart(0)
	e.must(0, "/after")
	if now := e.nodes[0].zxid(); now>>32 < before>>32+state.TermJump {
		t.Errorf("zxid %x, before the loss %x", now, before)
	}
	if have := e.nodes[0].ensemble.Identity(); have.Ensemble != id || id == former || !e.nodes[0].handler.exists("/kept") {
		t.Errorf("the server is in ensemble %x, want %x, with its data", have.Ensemble, id)
	}
	e.mustStart(1) // with its old directory
	asked := e.net.dialled(0)
	wait.Until(t, "questions of the lost server", func() bool { return e.net.dialled(0) >= asked+5 })
	if s := e.nodes[1].Status(); s.Leader != state.NoServer {
		t.Errorf("a lost server has come back: %+v", s)
	}
	e.stop(1)
	for _, i := range []int{1, 2} {
		e.wipe(i)
		e.add(0, i)
		e.mustStart(i)
	}
	e.waitVoters(0, 1, 2)
	e.must(2, "/three-again")
	e.agree()
}

// A backup becomes the data of a server without any, and is refused where there are some.
func TestRecovery_FromBackup(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/kept")
	e.waitFormed()
	e.nodes[0].handler.mu.Lock()
	s := e.nodes[0].handler.machine.Snapshot()
	e.nodes[0].handler.mu.Unlock()
	var file bytes.Buffer
	err := s.Write(&file)
	s.Release()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		e.stop(i)
	}
	_, err = recovery.Open(e.files(0), 0, bytes.NewReader(file.Bytes()), 0)
	if !errors.Is(err, recovery.ErrHasData) {
		t.Errorf("%v, want ErrHasData", err)
	}
	_, err = recovery.Open(e.files(0), 1, nil, 0)
	if err == nil || !strings.Contains(err.Error(), "belongs to server 0") {
		t.Errorf("%v, want an error that names the directory's server", err)
	}
	e.wipe(0)
	if _, err = recovery.Open(e.files(0), 0, nil, 0); !errors.Is(err, recovery.ErrNoData) {
		t.Errorf("%v, want ErrNoData", err)
	}
	if _, err = recovery.Open(e.files(0), 0, strings.NewReader("no backup at all"), 0); err == nil {
		t.Error("what is no backup is taken for one")
	}
	r, err := recovery.Open(e.files(0), 0, bytes.NewReader(file.Bytes()), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Run(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := recovery.Open(e.files(0), 0, nil, 0); !errors.Is(err, recovery.ErrOneVoter) {
		t.Errorf("%v, want ErrOneVoter", err)
	}
	e.mustStart(0)
	e.must(0, "/after")
	if !e.nodes[0].handler.exists("/kept") {
		t.Error("the data of the backup are not there")
	}
}

// A crash while the new files are put in place leaves an identity without stable.db (storage.Replace), with which no
// server starts.
func TestRecovery_Interrupted_StartsNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := storage.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}
	s, err := storage.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Identity.Save(storage.Identity{Ensemble: [16]byte{1}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "stable.db"), filepath.Join(dir, "kept")); err != nil { // the first step
		t.Fatal(err)
	}
	if _, err := storage.Open(c); err == nil || !strings.Contains(err.Error(), "stable.db") {
		t.Errorf("%v, want an error that names the missing file", err)
	}
}

// Two servers have lost their disks, and the third, which has all data, is unreachable: the two must not form a new
// ensemble.
func TestRecovery_TwoWipedOneUnreachable_FormNothing(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 3, nil)
	e.must(0, "/kept")
	e.waitFormed()
	e.stop(2)
	for i := range 2 {
		e.stop(i)
		e.wipe(i)
	}
	asked := e.net.dialled(2)
	for i := range 2 {
		e.mustStart(i)
	}
	wait.Until(t, "questions to the server that is away", func() bool { return e.net.dialled(2) >= asked+10 })
	if e.formed(0) || e.formed(1) {
		t.Error("wiped servers have formed an ensemble")
	}
}

// A command of release 1.0 whose ACL takes more memory than there is ends its server at each start. It is left out by
// name, and nothing else is, also where the server has no others.
func TestRecovery_SkipsLongACLs(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := newTestEnsemble(t, 1, nil)
	e.must(0, "/before")
	bomb := state.Command{Op: state.OpCreate, Path: "/bomb", Data: []byte("x")}
	for i := range 100 {
		bomb.Identities = append(bomb.Identities, znode.ID{Scheme: "digest", ID: fmt.Sprint(i, ":x")})
	}
	for i := range 1000 {
		bomb.ACL = append(bomb.ACL, znode.ACL{Perms: znode.Perms(i), ID: znode.AuthIDs})
	}
	e.await("the long ACL", e.propose(0, &bomb))
	e.must(0, "/after")
	e.stop(0)
	open := func(skipOver int64) (*recovery.Recovery, error) {
		return recovery.Open(e.files(0), e.servers[0].ID, nil, skipOver)
	}
	for _, over := range []int64{0, 1 << 30} {
		if _, err := open(over); !errors.Is(err, recovery.ErrOneVoter) {
			t.Errorf("nothing over %d bytes to be skipped: %v", over, err)
		}
	}
	r, err := open(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if r.Majority(nil) {
		t.Error("a server alone is not lost")
	}
	skipped := r.Report().Skipped
	if len(skipped) != 1 || skipped[0].Path != "/bomb" || skipped[0].Entries != 100_000 || skipped[0].Index == 0 {
		t.Fatalf("skipped %+v", skipped)
	}
	if _, _, err := r.Run(time.Now()); err != nil {
		t.Fatal(err)
	}
	e.mustStart(0)
	e.must(0, "/again")
	h := e.nodes[0].handler
	if !h.exists("/before") || !h.exists("/after") || h.exists("/bomb") {
		t.Error("something else is missing, or the long ACL is there")
	}
}
