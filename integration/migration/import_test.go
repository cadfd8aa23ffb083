//go:build interop

package migration_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// origin is how a ZooKeeper whose data is imported was run, and how it ended.
type origin struct {
	name     string
	version  string
	servers  int
	config   []string
	killed   bool // under load, with kill -9; otherwise it was at rest, and stopped in good order
	strict   bool // every ACL is a common one, or ZooKeeper may lose some at its next start
	root     bool
	wrap     bool // it begins with a counter that is nearly at its end
	requests int
}

// javaFlags start servers quickly, which then delete containers and znodes with a TTL as soon as they may.
func javaFlags() []string {
	return []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dznode.container.checkIntervalMs=200", "-Dznode.container.maxPerMinute=1000000"}
}

// config is that of all origins: logs and snapshots are small, so that there are many, most of them fuzzy.
func config(further ...string) []string {
	return append([]string{"snapCount=900", "preAllocSize=1000", "reconfigEnabled=true",
		"autopurge.purgeInterval=0"}, further...)
}

// TestImport: what is in the data directory of a real ZooKeeper is what its clients saw.
func TestImport(t *testing.T) {
	for _, o := range origins() {
		t.Run(o.name, func(t *testing.T) {
			if o.killed {
				importKilled(t, o)
			} else {
				importAtRest(t, o)
			}
		})
	}
}

func (o *origin) run(t *testing.T) *zookeeper.Ensemble {
	t.Helper()
	opts := zookeeper.Options{Version: o.version, Servers: o.servers, Config: config(o.config...), Flags: javaFlags()}
	if o.wrap {
		opts.Data = nearWrap(t)
	}
	return zookeeper.Run(t, opts)
}

// nearWrap is a data directory with a znode /wrap whose counter of children has a few numbers left.
func nearWrap(t *testing.T) string {
	t.Helper()
	r := replica.New(znode.NewTree(), session.NewTable(), 0)
	for i, c := range []replica.Change{
		{Op: replica.OpCreate, Path: "/wrap", ACL: znode.OpenACL, Creates: 1},
		{Op: replica.OpCreate, Path: "/wrap/first", ACL: znode.OpenACL, Creates: math.MaxInt32 - 30},
	} {
		if err := r.Apply(new(znode.Txn), &replica.Txn{Zxid: znode.Zxid(i + 1), Change: c}, false); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if _, err := datadir.WriteSnapshot(dir, r); err != nil {
		t.Fatal(err)
	}
	return dir
}

func importAtRest(t *testing.T, o origin) {
	e := o.run(t)
	l := startLoad(t, e, o.version, &load{workers: 4, root: o.root, members: o.servers > 1})
	// The shortest timeout must outlast, from the start of a server on, all that is done before its session is resumed.
	h := hold(t, e.Leader().Address, 40*time.Second, 50*time.Second, 60*time.Second)
	l.after(o.requests)
	l.end()
	leader := e.Leader()
	want := listAtRest(t, leader.Address, zookeeper.Superuser, h.ids)
	l.checkKept(want.znodes)
	for _, s := range e.Servers {
		s.Stop()
	}
	r := o.load(t, leader)
	got := listReplica(t, r)
	compare(t, "read", want, got, nil)
	if got.zxid != want.zxid {
		t.Errorf("the last transaction is %v, want %v", got.zxid, want.zxid)
	}
	z := o.imported(t, leader)
	got, err := list(t, z.Leader().Addr(), cluster.SuperCredentials)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "imported", want, got, nil)
	dir := exported(t, z.Leader())
	h.resume(t, z.Leader().Addr())
	for _, version := range homes() {
		back := zookeeper.Run(t, zookeeper.Options{Version: version, Servers: o.servers, Data: dir, Flags: javaFlags()})
		if got, err = list(t, back.Leader().Address, zookeeper.Superuser); err != nil {
			t.Fatal(err)
		}
		compare(t, "back in "+version, want, got, nil)
		h.resume(t, back.Leader().Address)
	}
}

// exported has a server of zk-lite write a data directory for ZooKeeper.
func exported(t *testing.T, s *cluster.Server) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	said, err := exec.Command(os.Getenv(cluster.BinaryVariable), "export-zookeeper", "--out", dir,
		"--http", "http://"+s.HTTPAddr(), "--auth", "digest:"+cluster.SuperCredentials).CombinedOutput()
	if err != nil {
		t.Fatalf("export-zookeeper: %v: %s", err, said)
	}
	t.Logf("exported: %s", said)
	return dir
}

// importKilled kills a whole ensemble under load. What its files hold is what the server with the newest shows when it
// starts again.
func importKilled(t *testing.T, o origin) {
	e := o.run(t)
	l := startLoad(t, e, o.version, &load{workers: 4, root: o.root, members: o.servers > 1, strict: o.strict})
	l.after(o.requests)
	for _, s := range e.Servers {
		s.Kill()
	}
	l.end()
	var newest *zookeeper.Server
	var r *replica.Replica
	for _, s := range e.Servers {
		if x := o.load(t, s); r == nil || x.Zxid > r.Zxid {
			r, newest = x, s
		}
	}
	got := listReplica(t, r)
	l.checkKept(got.znodes)
	// It must change nothing before it is read. Sessions expire on a multiple of its tick since the machine's start, so
	// a tick of 60 s left one case in 60 in which those of 1 s expired at once; 20 ticks must fit in 31 bits.
	again := zookeeper.Run(t, zookeeper.Options{Version: o.version, Servers: 1, Data: o.copyOf(t, newest),
		Flags:  append(javaFlags(), "-Dznode.container.checkIntervalMs=3600000"),
		Config: []string{"tickTime=100000000"}})
	want, err := list(t, again.Servers[0].Address, zookeeper.Superuser)
	if err != nil {
		t.Fatal(err)
	}
	lost := l.hasAsked
	if o.strict {
		lost = nil
	}
	compare(t, "read", want, got, lost)
	z := o.imported(t, newest)
	if got, err = list(t, z.Leader().Addr(), cluster.SuperCredentials); err != nil {
		t.Fatal(err)
	}
	l.checkKept(got.znodes)
}

// imported starts as many servers of zk-lite with a server's data.
func (o *origin) imported(t *testing.T, s *zookeeper.Server) *cluster.Ensemble {
	t.Helper()
	// A session keeps its timeout, which its client asks for again.
	z := cluster.Start(t, o.servers, cluster.Options{NotStarted: true,
		Config: map[string]string{"maxSessionTimeout": "60000"}})
	flags := []string{"--data-dir", s.DataDir()}
	if logs := o.logDir(s); logs != "" {
		flags = append(flags, "--log-dir", logs)
	}
	begin := time.Now()
	said, err := z.Server(1).Run("import-zookeeper", flags...)
	if err != nil {
		t.Fatalf("import-zookeeper: %v: %s", err, said)
	}
	t.Logf("imported in %v: %s", time.Since(begin), said)
	z.StartAll()
	z.WaitServing()
	return z
}

// load reads a server's data directories, and logs what is in them.
func (o *origin) load(t *testing.T, s *zookeeper.Server) *replica.Replica {
	t.Helper()
	begin := time.Now()
	r, report, err := datadir.Load(s.DataDir(), o.logDir(s))
	if err != nil {
		t.Fatalf("Load(%s) = %v", s.DataDir(), err)
	}
	t.Logf("read in %v: %d znodes, %d sessions, %d transactions after %+v, torn %v, digests %+v, warnings %q",
		time.Since(begin), report.Znodes, report.Sessions, report.Transactions, report.Snapshot, report.Torn,
		report.Digests, report.Warnings)
	digests := o.version >= zookeeper.V36 && !slices.Contains(o.config, "digest.enabled=false")
	// A fuzzy snapshot may hold a change of the transaction after that of its digest.
	if have := report.Digests.Equal > 0; have != digests || report.Digests.Spoilt > 1 && !o.root {
		t.Errorf("digests %+v; want some equal: %v", report.Digests, digests)
	}
	return r
}

// logDir is where a server has its logs; "" with the snapshots.
func (o *origin) logDir(s *zookeeper.Server) string {
	for _, line := range o.config {
		if dir, ok := strings.CutPrefix(line, "dataLogDir=$DIR/"); ok {
			return filepath.Join(s.Dir, dir)
		}
	}
	return ""
}

// copyOf is a data directory with a server's snapshots and logs.
func (o *origin) copyOf(t *testing.T, s *zookeeper.Server) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS(s.DataDir()))
	if logs := o.logDir(s); err == nil && logs != "" {
		err = os.CopyFS(dir, os.DirFS(logs))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
