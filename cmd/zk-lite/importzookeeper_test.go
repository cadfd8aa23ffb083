package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/adler32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/jute"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/migration/replica"
	"github.com/zk-lite/zk-lite/migration/seed"
	"github.com/zk-lite/zk-lite/session"
	"github.com/zk-lite/zk-lite/znode"
)

// The session of the data of zooKeeperData, and their last transaction.
const (
	oldSession znode.SessionID = 0x2000_0000_0000_0007
	oldZxid    znode.Zxid      = 0x3_0000_0009
)

// zooKeeperData writes a data directory as ZooKeeper does: one snapshot (FileSnap), with sequential znodes and a session
// that owns an ephemeral.
func zooKeeperData(t *testing.T) (dir string) {
	t.Helper()
	r := replica.New(znode.NewTree(), session.NewTable(), 0)
	for _, x := range []replica.Txn{
		{Zxid: 0x3_0000_0001, Session: oldSession, Change: replica.Change{Op: replica.OpCreateSession, Timeout: 30_000}},
		{Zxid: 0x3_0000_0002, Time: 1_600_000_000_000, Change: replica.Change{
			Op: replica.OpCreate, Path: "/queue", Data: []byte("kept"), ACL: znode.OpenACL, Creates: 1,
		}},
		{Zxid: 0x3_0000_0003, Time: 1_600_000_000_001, Session: oldSession, Change: replica.Change{
			Op: replica.OpCreate, Path: "/queue/n-0000000041", Data: []byte{}, ACL: znode.OpenACL, Creates: 42, Ephemeral: true,
		}},
		{Zxid: oldZxid, Time: 1_600_000_000_002, Change: replica.Change{
			Op: replica.OpSetACL, Path: "/queue", ACL: []znode.ACL{{Perms: znode.PermAll, ID: znode.ID{Scheme: "world", ID: "anyone"}},
				{Perms: znode.PermRead, ID: znode.ID{Scheme: "sasl", ID: "someone"}}}, Version: 1,
		}},
	} {
		if err := r.Apply(&znode.Txn{}, &x, false); err != nil {
			t.Fatal(err)
		}
	}
	const magic, version, database = 0x5a4b534e, 2, -1 // "ZKSN"
	var b bytes.Buffer
	b.Write(jute.AppendInt64(jute.AppendInt32(jute.AppendInt32(nil, magic), version), database))
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	sum := adler32.Checksum(b.Bytes())
	b.Write(jute.AppendUstring(jute.AppendInt64(nil, int64(sum)), "/"))
	dir = t.TempDir()
	file := filepath.Join(dir, "version-2", fmt.Sprintf("snapshot.%x", int64(oldZxid)))
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runImport runs the command, and returns its output and exit code.
func runImport(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "zk-lite", append([]string{"import-zookeeper"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its code says it
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// ensembleFiles writes the configurations of three servers, and returns the ports of the clients.
func ensembleFiles(t *testing.T) (cfg, dirs []string, clients []int) {
	t.Helper()
	p := ports.Take(t, 9)
	var servers strings.Builder
	for i := range 3 {
		fmt.Fprintf(&servers, "server.%d=127.0.0.1:%d:%d\n", i+1, p[3*i], p[3*i+1])
	}
	for i := range 3 {
		dir := t.TempDir()
		text := fmt.Sprintf("tickTime=200\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"+
			"4lw.commands.whitelist=*\nmaxSessionTimeout=60000\n%s", filepath.Join(dir, "data"), p[3*i+2], servers.String())
		cfg, dirs, clients = append(cfg, filepath.Join(dir, "zoo.cfg")), append(dirs, filepath.Join(dir, "data")), append(clients, p[3*i+2])
		if err := os.Mkdir(dirs[i], 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{cfg[i]: text, filepath.Join(dirs[i], "myid"): fmt.Sprint(i + 1)} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cfg, dirs, clients
}

// runServer starts a server that ends with the test. stop ends it before.
func runServer(t *testing.T, cfg string) (log *output, stop func()) {
	t.Helper()
	log = &output{}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "zk-lite", "server", "--config", cfg)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return log, stop
}

// An ensemble of three begins with ZooKeeper's data, which one of them has. A client goes on with its session, as it is;
// numbers and zxids go on. Nothing is taken over twice.
func TestImportZooKeeper_Ensemble(t *testing.T) {
	tier.Seconds(t)
	data := zooKeeperData(t)
	cfg, dirs, clients := ensembleFiles(t)
	out, errs, code := runImport(t, "--data-dir", data, "--config", cfg[1], "-o", "json")
	var report struct {
		Found    datadir.Report
		File     string
		Findings []seed.Finding
	}
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if x := report.Found; x.Znodes != 6 || x.Sessions != 1 || x.Zxid != oldZxid.String() || report.File != filepath.Join(dirs[1], seed.Name) {
		t.Errorf("%s, want 6 znodes and a session, zxid %v", out, oldZxid)
	}
	if len(report.Findings) != 1 || report.Findings[0].Setting != "java.security.auth.login.config" || report.Findings[0].Some[0] != "/queue" {
		t.Errorf("findings %+v, want the ACL with SASL", report.Findings)
	}
	if _, errs, code := runImport(t, "--data-dir", data, "--config", cfg[1]); code != 1 || !strings.Contains(errs, "imported already") {
		t.Errorf("a second import: exit code %d, %s", code, errs)
	}
	var stops []func()
	for i := range 3 {
		_, stop := runServer(t, cfg[i])
		stops = append(stops, stop)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	password := session.CompatiblePassword(oldSession)
	c, err := client.Connect(ctx, fmt.Sprintf("127.0.0.1:%d", clients[2]),
		client.WithSession(client.Credentials{ID: oldSession, Password: password[:]}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.SessionID() != oldSession {
		t.Errorf("session %v, want that of ZooKeeper, %v", c.SessionID(), oldSession)
	}
	_, stat, err := c.Get(ctx, "/queue/n-0000000041")
	if err != nil || stat.EphemeralOwner != oldSession || stat.Czxid != 0x3_0000_0003 || stat.Ctime != 1_600_000_000_001 {
		t.Errorf("the ephemeral: %+v, %v", stat, err)
	}
	path, _, err := c.Create(ctx, "/queue/n-", nil, client.PersistentSequential)
	if err != nil || path != "/queue/n-0000000042" {
		t.Errorf("the next number: %s, %v, want 42", path, err)
	}
	_, stat, err = c.Exists(ctx, path)
	if err != nil || stat.Czxid <= oldZxid {
		t.Errorf("zxid %v, %v, want one above %v", stat.Czxid, err, oldZxid)
	}
	if _, errs, code := runImport(t, "--data-dir", data, "--config", cfg[0]); code != 1 || !strings.Contains(errs, "belongs to an ensemble already") {
		t.Errorf("an import into a member: exit code %d, %s", code, errs)
	}

	stops[0]()
	if err := os.RemoveAll(dirs[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dirs[0], 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dirs[0], "myid"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, _ := runServer(t, cfg[0])
	if !wait.Holds(func() bool { return strings.Contains(log.String(), "zk-lite member token 1") }) {
		t.Errorf("a server that has lost its disk is not refused: %s", log)
	}
}

// What clients of ZooKeeper saw, of every version, a client of a server that has taken it over sees: each field of each
// Stat, data and ACLs; and each session goes on with the password that ZooKeeper computes.
func TestImportZooKeeper_OfEveryVersion(t *testing.T) {
	tier.Seconds(t)
	origins, err := filepath.Glob(filepath.Join("..", "..", "migration", "datadir", "testdata", "origin", "*"))
	if err != nil || len(origins) < 6 {
		t.Fatalf("%d directories of origins, %v", len(origins), err)
	}
	for _, origin := range origins {
		t.Run(filepath.Base(origin), func(t *testing.T) {
			t.Parallel()
			dir, port := t.TempDir(), ports.Take(t, 1)[0]
			cfg := filepath.Join(dir, "zoo.cfg")
			text := fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"+
				"znode.container.checkIntervalMs=3600000\nDigestAuthenticationProvider.superDigest=%s\n",
				filepath.Join(dir, "data"), port, superDigest)
			if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, errs, code := runImport(t, "--config", cfg, "--data-dir", origin); code != 0 {
				t.Fatalf("exit code %d: %s%s", code, out, errs)
			}
			runServer(t, cfg)
			seen, err := os.ReadFile(filepath.Join(origin, "seen.txt"))
			if err != nil {
				t.Fatal(err)
			}
			server := fmt.Sprintf("127.0.0.1:%d", port)
			compareSeen(t, server, strings.Split(strings.TrimSpace(string(seen)), "\n"))
		})
	}
}

// compareSeen compares what a server has with the lines of what clients of ZooKeeper saw.
func compareSeen(t *testing.T, server string, lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Connect(ctx, server, client.WithAuth("digest", []byte("super:secret")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range lines {
		if id, is := strings.CutPrefix(want, "session 0x"); is {
			resumeSeen(ctx, t, server, id)
			continue
		}
		var path string
		if _, err := fmt.Sscanf(want, "%q", &path); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		data, stat, err := c.Get(ctx, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		acl, _, err := c.GetACL(ctx, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		value := "null"
		if data != nil {
			value = fmt.Sprintf("%q", data)
		}
		got := fmt.Sprintf("%q %s czxid=%v mzxid=%v pzxid=%v ctime=%d mtime=%d version=%d cversion=%d aversion=%d owner=%v children=%d",
			path, value, stat.Czxid, stat.Mzxid, stat.Pzxid, stat.Ctime, stat.Mtime, stat.Version, stat.Cversion, stat.Aversion,
			stat.EphemeralOwner, stat.NumChildren)
		for _, a := range acl {
			got += fmt.Sprintf(" %d:%q:%q", a.Perms, a.ID.Scheme, a.ID.ID)
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// resumeSeen continues a session of ZooKeeper's clients, "ID TIMEOUT" in hexadecimal and milliseconds.
func resumeSeen(ctx context.Context, t *testing.T, server, text string) {
	t.Helper()
	var id uint64
	var millis int64
	if _, err := fmt.Sscanf(text, "%x %d", &id, &millis); err != nil {
		t.Fatalf("session %s: %v", text, err)
	}
	password := session.CompatiblePassword(znode.SessionID(id))
	c, err := client.Connect(ctx, server, client.WithSessionTimeout(time.Duration(millis)*time.Millisecond),
		client.WithSession(client.Credentials{ID: znode.SessionID(id), Password: password[:]}))
	if err != nil {
		t.Errorf("session %x: %v", id, err)
		return
	}
	defer c.Close()
	if got := c.SessionID(); got != znode.SessionID(id) {
		t.Errorf("session %v, want that of ZooKeeper, %#x", got, id)
	}
}

// A server alone; ZooKeeper's own zoo.cfg, whose dataDir is not changed; and what is refused.
func TestImportZooKeeper_Standalone(t *testing.T) {
	tier.Seconds(t)
	data := zooKeeperData(t)
	dir := t.TempDir()
	cfg := filepath.Join(dir, "zoo.cfg")
	write := func(extra string) {
		text := fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n%s", data, ports.Take(t, 1)[0], extra)
		if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("limits.treeBytes=1MiB\n")
	own := filepath.Join(dir, "own")
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--config", cfg}, 2, "--data-dir is missing"},
		{[]string{"--config", cfg, "--data-dir", data, "-o", "yaml"}, 2, "want text or json"},
		{[]string{"--config", cfg, "--data-dir", data}, 1, "give zk-lite one of its own"},
		{[]string{"--config", cfg, "--data-dir", dir, "--to", own}, 1, dir},
		{[]string{"--config", cfg, "--data-dir", data, "--to", own, "--limits-tree-bytes", "1"}, 1, "out of range"},
	} {
		out, errs, code := runImport(t, x.args...)
		if code != x.code || !strings.Contains(errs, x.want) {
			t.Errorf("%v: exit code %d, %q, want %d and %q", x.args, code, out+errs, x.code, x.want)
		}
	}
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Errorf("what was refused has made %s: %v", own, err)
	}
	out, errs, code := runImport(t, "--config", cfg, "--data-dir", data, "--to", own)
	if code != 0 || !strings.Contains(out, "next: start server 1") || !strings.Contains(out, seed.Name) {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	write("dataDir=" + own + "\n")
	text, err := os.ReadFile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg, []byte(strings.Replace(string(text), "dataDir="+data+"\n", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	log, _ := runServer(t, cfg)
	if !wait.Holds(func() bool { return strings.Contains(log.String(), "serving clients") }) {
		t.Fatalf("it does not serve: %s", log)
	}
}
