package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/consensus/recovery"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/migration/seed"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// The last transaction of the imported ensemble, and a session of it.
const (
	importedZxid                    = znode.Zxid(0x7_0000_0123)
	importedSession znode.SessionID = 0x1000_0000_0000_0001
)

// imported is the state of a ZooKeeper server: a znode with this data, and an ephemeral of a session.
func imported(t testing.TB, data string) *replica.Replica {
	t.Helper()
	r := replica.New(znode.NewTree(), session.NewTable(), 0)
	for _, x := range []replica.Txn{
		{Zxid: 0x7_0000_0001, Session: importedSession, Change: replica.Change{Op: replica.OpCreateSession, Timeout: 30_000}},
		{Zxid: 0x7_0000_0002, Time: 5, Change: replica.Change{
			Op: replica.OpCreate, Path: "/imported", Data: []byte(data), ACL: znode.OpenACL, Creates: 17,
		}},
		{Zxid: importedZxid, Time: 6, Session: importedSession, Change: replica.Change{
			Op: replica.OpCreate, Path: "/imported/ephemeral", Data: []byte{}, ACL: znode.OpenACL, Creates: 1, Ephemeral: true,
		}},
	} {
		if err := r.Apply(&znode.Txn{}, &x, false); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// seed gives servers that do not run imported data, and returns their digest.
func (e *testEnsemble) seed(data string, servers ...int) string {
	e.t.Helper()
	digest := ""
	for _, i := range servers {
		s, err := seed.New(imported(e.t, data), 0)
		if err == nil {
			err = s.Save(e.nodes[i].dir)
		}
		if err != nil {
			e.t.Fatal(err)
		}
		digest = s.Digest()
	}
	return digest
}

func (e *testEnsemble) seedFile(i int) string { return filepath.Join(e.nodes[i].dir, seed.Name) }

// checkImported waits until all servers have the imported data, and go on from them.
func (e *testEnsemble) checkImported(after ...string) {
	e.t.Helper()
	for i, x := range e.nodes {
		e.must(i, fmt.Sprint("/after", after, i))
		x.handler.mu.RLock()
		m := x.handler.machine
		s := m.Sessions().Get(importedSession)
		if s == nil || !s.Compatible() || s.Timeout != 30*time.Second || m.Tree().EphemeralCount(importedSession) != 1 {
			e.t.Errorf("server %d: session %+v, want the imported one with its ephemeral", i, s)
		}
		if got := m.Zxid(); got>>32 < importedZxid>>32+state.TermJump {
			e.t.Errorf("server %d: zxid %v, want one above all that a client of ZooKeeper can have seen", i, got)
		}
		if _, stat, code := m.Tree().Get("/imported", nil); code != znode.OK || stat.Czxid != 0x7_0000_0002 {
			e.t.Errorf("server %d: %v %+v", i, code, stat)
		}
		x.handler.mu.RUnlock()
		if _, err := os.Stat(e.seedFile(i)); !os.IsNotExist(err) {
			e.t.Errorf("server %d: the file of the imported data stays: %v", i, err)
		}
		if id, err := x.cfg.Storage.Identity.Load(); err != nil || id.Seed != "" || id.Bootstrapping {
			e.t.Errorf("server %d: the founding is noted as unfinished: %+v, %v", i, id, err)
		}
	}
	e.agree()
}

// An ensemble begins with the data that one of its voters has, whichever that is, or several, and goes on as any other:
// after a restart, and without servers that have lost their disk.
func TestSeed_WhoeverHasIt(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	for _, holders := range [][]int{{0}, {2}, {1, 2}, {0, 1, 2}} {
		e := prepare(t, 3, nil)
		e.seed("x", holders...)
		for i := range 3 {
			e.mustStart(i)
		}
		e.waitFormed()
		e.checkImported()
		for i := range 3 {
			e.stop(i)
		}
		for i := range 3 {
			e.mustStart(i)
		}
		e.checkImported("the restart")
	}
}

// An observer, which may have the lowest id, gets the data from the leader.
func TestSeed_Observer(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 4, nil)
	e.servers[0].Voter = false
	e.seed("x", 3)
	for i := range 4 {
		e.mustStart(i)
	}
	e.waitFormed()
	e.checkImported()
}

func TestSeed_Standalone(t *testing.T) {
	t.Parallel()
	e := prepare(t, 1, nil)
	e.seed("x", 0)
	e.mustStart(0)
	e.checkImported()
}

// A server that has lost its disk, with the imported data, does not come back with a new import of them.
func TestSeed_WipedServer_IsRefused(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	e.seed("x", 1)
	for i := range 3 {
		e.mustStart(i)
	}
	e.waitFormed()
	e.checkImported()
	e.stop(2)
	e.wipe(2)
	e.mustStart(2)
	e.wantFatal(2, "data directory is empty")
	e.stop(2)
	e.wipe(2)
	e.seed("x", 2)
	e.mustStart(2)
	if _, waiting, err := e.nodes[2].founder.Round(); err != nil || !strings.Contains(waiting, "delete "+e.seedFile(2)) {
		t.Errorf("with imported data again it waits %q, %v", waiting, err)
	}
	if e.formed(2) {
		t.Error("a wiped server has come back with imported data")
	}
}

// Voters with different data begin nothing, and say so, until those of one are deleted.
func TestSeed_Two_AreRefused(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	first, second := e.seed("x", 1), e.seed("y", 2)
	for i := range 3 {
		e.mustStart(i)
	}
	wait.Until(t, "questions to all", func() bool { return e.net.dialled(0) >= 5 && e.net.dialled(2) >= 5 })
	for i := range 3 {
		_, waiting, err := e.nodes[i].founder.Round()
		if err != nil || !strings.Contains(waiting, "server 1 has "+first) || !strings.Contains(waiting, "server 2 has "+second) {
			t.Errorf("server %d waits %q, %v; want both seeds", i, waiting, err)
		}
		if e.formed(i) {
			t.Errorf("server %d belongs to an ensemble", i)
		}
	}
	e.stop(2)
	if err := os.Remove(e.seedFile(2)); err != nil {
		t.Fatal(err)
	}
	e.mustStart(2)
	e.waitFormed()
	e.checkImported()
}

// A server of release 1.0 founds the ensemble without data. The one that has some does not belong to it, and says why.
func TestSeed_FoundedWithoutIt_TakesNoPart(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	e.seed("x", 1)
	e.mustStart(0)
	if _, err := e.nodes[0].founder.Found([16]byte{1}, true, ""); err != nil {
		t.Fatal(err)
	}
	e.stop(0)
	for i := range 3 {
		e.mustStart(i)
	}
	wait.Until(t, "a leader of the other two", func() bool { return e.nodes[2].handler != nil && e.nodes[2].Status().Leader != state.NoServer })
	asked := e.net.dialled(1)
	wait.Until(t, "questions to the server with the data", func() bool { return e.net.dialled(1) >= asked+5 })
	if _, waiting, err := e.nodes[1].founder.Round(); err != nil || e.formed(1) || !strings.Contains(waiting, e.seedFile(1)) {
		t.Errorf("server 1 belongs to the ensemble: %v; it waits %q, %v", e.formed(1), waiting, err)
	}
}

// A voter is missing, and the operator has said so. The data are those of one that is not the founder.
func TestSeed_MissingServer(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	e.seed("x", 1)
	e.without(0, 2)
	e.mustStart(0)
	e.mustStart(1)
	e.waitFormedBy(0)
	e.waitVoters(0, 1)
	e.mustStart(2)
	e.waitVoters(0, 1, 2)
	e.checkImported()
}

// Servers that have been told of the ensemble, and have no data yet, elect no leader among themselves, however long the
// only one that has the data is away.
func TestSeed_WithoutTheData_NoServerLeads(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	digest := e.seed("x", 1)
	for i := range 3 {
		e.mustStart(i)
		if _, err := e.nodes[i].founder.Found([16]byte{1}, i == 0, digest); err != nil {
			t.Fatal(err)
		}
		e.stop(i)
	}
	e.mustStart(0)
	e.mustStart(2)
	asked := e.net.dialled(1)
	wait.Until(t, "questions to the server with the data", func() bool { return e.net.dialled(1) >= asked+20 })
	for _, i := range []int{0, 2} {
		if s := e.nodes[i].Status(); s.Leader != state.NoServer || s.Term != 0 {
			t.Errorf("server %d: %+v, want no leader, and no election", i, s)
		}
	}
	e.mustStart(1)
	e.waitFormed()
	e.checkImported()
}

// The server with the data, which also founds, is killed after each write of the founding. It always goes on.
func TestSeed_CrashInBetween_IsMadeGood(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	for name, crash := range map[string]func(e *testEnsemble, id storage.Identity, file []byte){
		"the ensemble is noted": func(*testEnsemble, storage.Identity, []byte) {},
		"the term is written": func(e *testEnsemble, _ storage.Identity, _ []byte) {
			if err := storage.SetTerm(e.nodes[0].cfg.Storage.Stable, uint64(importedZxid>>32)+state.TermJump); err != nil {
				e.t.Fatal(err)
			}
		},
		"the snapshot is written, and the file is there": func(e *testEnsemble, id storage.Identity, file []byte) {
			if err := e.nodes[0].founder.Plant(&id); err != nil {
				e.t.Fatal(err)
			}
			if err := os.WriteFile(e.seedFile(0), file, 0o600); err != nil {
				e.t.Fatal(err)
			}
		},
		"all is written": func(e *testEnsemble, id storage.Identity, _ []byte) {
			if err := e.nodes[0].founder.Plant(&id); err != nil {
				e.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := prepare(t, 3, nil)
			digest := e.seed("x", 0)
			file, err := os.ReadFile(e.seedFile(0))
			if err != nil {
				t.Fatal(err)
			}
			e.mustStart(0)
			id, err := e.nodes[0].founder.Found([16]byte{1}, true, digest)
			if err != nil {
				t.Fatal(err)
			}
			crash(e, id, file)
			e.stop(0)
			if _, err := recovery.Open(e.files(0), 0, nil, 0); !errors.Is(err, recovery.ErrFounding) {
				t.Errorf("recover: %v, want ErrFounding", err)
			}
			for i := range 3 {
				e.mustStart(i)
			}
			e.waitFormed()
			if got := e.nodes[2].ensemble.Identity().Ensemble; got != id.Ensemble {
				t.Errorf("server 2 is in ensemble %x, want %x", got, id.Ensemble)
			}
			e.checkImported()
		})
	}
}

// The same for a server with the data that another has asked.
func TestSeed_CrashOfTheOtherServer_IsMadeGood(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	e := prepare(t, 3, nil)
	digest := e.seed("x", 1)
	file, err := os.ReadFile(e.seedFile(1))
	if err != nil {
		t.Fatal(err)
	}
	e.mustStart(1)
	id, err := e.nodes[1].founder.Found([16]byte{1}, false, digest)
	if err == nil {
		err = e.nodes[1].founder.Plant(&id)
	}
	if err != nil || id.Seed != "" {
		t.Fatalf("identity %+v, %v", id, err)
	}
	e.stop(1)
	if err := os.WriteFile(e.seedFile(1), file, 0o600); err != nil { // it was not removed
		t.Fatal(err)
	}
	e.mustStart(0)
	if _, err := e.nodes[0].founder.Found([16]byte{1}, true, digest); err != nil {
		t.Fatal(err)
	}
	e.stop(0)
	for i := range 3 {
		e.mustStart(i)
	}
	e.waitFormed()
	e.checkImported()
}

// A damaged file, and a directory that has begun another ensemble, are named before anything is founded.
func TestSeed_Damaged_IsNamed(t *testing.T) {
	t.Parallel()
	e := prepare(t, 1, nil)
	e.seed("x", 0)
	b, err := os.ReadFile(e.seedFile(0))
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(e.seedFile(0), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.start(0); err == nil || !strings.Contains(err.Error(), e.seedFile(0)) || !strings.Contains(err.Error(), "import-zookeeper again") {
		t.Errorf("%v, want an error that names the file and what to do", err)
	}
	if _, err := os.Stat(filepath.Join(e.nodes[0].dir, "identity.json")); !os.IsNotExist(err) {
		t.Errorf("an ensemble was founded: %v", err)
	}
}
