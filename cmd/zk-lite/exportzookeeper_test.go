package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/zklitetest"
	"github.com/zk-lite/zk-lite/znode"
)

// everything fills a server with znodes of all kinds, and returns the clients whose sessions own ephemerals.
func everything(t *testing.T, servers string) (clients []*client.Client) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	connect := func() *client.Client {
		c, err := client.Connect(ctx, servers, client.WithSessionTimeout(40*time.Second))
		check(err)
		t.Cleanup(func() { _ = c.Close() }) // it may be closed, or its server gone
		return c
	}
	c := connect()
	create := func(path string, data []byte, mode client.Mode, acl ...client.ACL) {
		t.Helper()
		_, _, err := c.Create(ctx, path, data, mode, acl...)
		check(err)
	}
	create("/app", []byte("data"), client.Persistent)
	create("/app/null", nil, client.Persistent)
	create("/app/empty", []byte{}, client.Persistent)
	create("/app/ünïcode-日本語", []byte{0, 0xff, 1}, client.Persistent)
	create("/app/container", []byte("c"), client.Container)
	create("/app/container/child", nil, client.Persistent)
	_, _, err := c.CreateTTL(ctx, "/app/ttl", []byte("t"), client.PersistentTTL, time.Hour)
	check(err)
	_, _, err = c.CreateTTL(ctx, "/app/longest", nil, client.PersistentTTL, (1<<40-1)*time.Millisecond)
	check(err)
	for range 3 { // a counter that is ahead of the children
		path, _, err := c.Create(ctx, "/app/n-", nil, client.PersistentSequential)
		check(err)
		check(c.Delete(ctx, path, client.AnyVersion))
	}
	create("/app/n-", nil, client.PersistentSequential)
	for range 3 {
		_, err := c.Set(ctx, "/app", []byte("changed"), client.AnyVersion)
		check(err)
	}
	digest, err := client.DigestACL(client.PermAll, "ann", "secret")
	check(err)
	for name, acl := range map[string][]client.ACL{
		"digest": append(digest, client.ACL{Perms: client.PermRead, ID: client.ID{Scheme: "world", ID: "anyone"}}),
		"ip":     {{Perms: client.PermAll, ID: client.ID{Scheme: "ip", ID: "127.0.0.0/8"}}},
		"sasl":   {{Perms: client.PermRead, ID: client.ID{Scheme: "sasl", ID: "bob"}}, {Perms: client.PermAll, ID: client.ID{Scheme: "world", ID: "anyone"}}},
		"x509":   {{Perms: client.PermWrite, ID: client.ID{Scheme: "x509", ID: "CN=zoë,O=x"}}, {Perms: client.PermAll, ID: client.ID{Scheme: "world", ID: "anyone"}}},
	} {
		create("/acl-"+name, []byte(name), client.Persistent, acl...)
	}
	check(c.EnsurePath(ctx, "/zookeeper/quota/app", client.Persistent))
	create("/zookeeper/quota/app/zookeeper_limits", []byte("count=1000,bytes=100000"), client.Persistent)
	create("/zookeeper/quota/app/zookeeper_stats", []byte("count=0,bytes=0"), client.Persistent)
	for i := range 3 {
		o := connect()
		_, _, err := o.Create(ctx, "/app/ephemeral-"+string(rune('a'+i)), []byte("e"), client.Ephemeral)
		check(err)
		clients = append(clients, o)
	}
	return append(clients, c)
}

// runExport runs the command with -o json.
func runExport(t *testing.T, args ...string) (*export, error) {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs(append([]string{"export-zookeeper", "-o", "json"}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		return nil, err
	}
	e := new(export)
	if err := json.Unmarshal(out.Bytes(), e); err != nil {
		t.Fatalf("the output is no JSON: %v: %s", err, out.Bytes())
	}
	return e, nil
}

// recordsOf are all znodes of a tree, by path.
func recordsOf(t *znode.Tree) (all []znode.Record) {
	s := t.Snapshot()
	defer s.Release()
	_ = s.Walk(func(r *znode.Record) error { all = append(all, *r); return nil })
	slices.SortFunc(all, func(a, b znode.Record) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// What ZooKeeper's files hold after an export is what the server held, and the request for it is in the audit log.
func TestExportZooKeeper_Everything(t *testing.T) {
	tier.Seconds(t)
	audit := filepath.Join(t.TempDir(), "audit.log")
	e := zklitetest.Start(t, zklitetest.WithSetting("extendedTypesEnabled", "true"),
		zklitetest.WithSetting("audit.enable", "true"), zklitetest.WithSetting("audit.file", audit))
	clients := everything(t, e.ConnectString())
	dir := filepath.Join(t.TempDir(), "new")
	url := "http://" + e.HTTPAddrs()[0]
	got, err := runExport(t, "--out", dir, "--http", url)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(got.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want 0600", info.Mode(), err)
	}
	r, report, err := datadir.Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Ownerless) > 0 || r.Zxid.String() != got.Zxid {
		t.Errorf("loaded: zxid %v, ephemerals without an owner %q, want %v and none", r.Zxid, report.Ownerless, got.Zxid)
	}
	m := backupOf(t, url)
	have, want := recordsOf(r.Tree), recordsOf(m.Tree())
	if len(have) != got.Znodes || len(have) != len(want) {
		t.Errorf("%d znodes were written, %d read, want %d", got.Znodes, len(have), len(want))
	}
	for i := range min(len(have), len(want)) {
		h, w := &have[i], &want[i]
		if w.Path == znode.ConfigPath {
			w.Data, w.Stat = []byte{}, znode.Stat{}
		}
		if h.Path != w.Path || !bytes.Equal(h.Data, w.Data) || (h.Data == nil) != (w.Data == nil) || h.Stat != w.Stat ||
			!slices.Equal(h.ACL, w.ACL) {
			t.Errorf("the file has %+v, want %+v", h, w)
		}
	}
	if r.Sessions.Len() != len(clients) || got.Sessions != len(clients) || got.Containers != 1 || got.TTLs != 2 {
		t.Errorf("%d sessions loaded, reported %+v, want %d sessions, 1 container, 2 TTLs", r.Sessions.Len(), got, len(clients))
	}
	for _, c := range clients {
		id := c.SessionID()
		listed := slices.ContainsFunc(got.Lost, func(l lostSession) bool { return l.Session == id.String() })
		if s := m.Sessions().Get(id); s == nil || listed == s.Compatible() {
			t.Errorf("session %v: %+v, is listed as lost: %v", id, s, listed)
		}
	}
	if !strings.Contains(strings.Join(got.Next, "\n"), "extendedTypesEnabled=true") {
		t.Errorf("the next steps are %q, want one about znodes with a TTL", got.Next)
	}
	if text := auditOf(t, e, audit); !strings.Contains(text, "/v1/snapshot") {
		t.Errorf("the audit log has no line about the export:\n%s", text)
	}
}

// auditOf is the audit log of a server, which it completes when it stops.
func auditOf(t *testing.T, e *zklitetest.Ensemble, file string) string {
	t.Helper()
	e.Stop(0)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// backupOf is the state of a server.
func backupOf(t *testing.T, url string) *state.Machine {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zk.backup")
	root := rootCommand()
	root.SetOut(new(bytes.Buffer))
	root.SetArgs([]string{"backup", file, "--http", url})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := stateOf(file)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Mistakes are named, and leave nothing behind.
func TestExportZooKeeper_Refuses(t *testing.T) {
	dir := t.TempDir()
	in := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, args := range map[string][]string{
		"--out is missing":                  {"--from", "x"},
		"version-2 has currentEpoch":        {"--from", "x", "--out", filepath.Dir(filepath.Dir(in("epoch/version-2/currentEpoch", "1")))},
		"full has stable.db":                {"--from", "x", "--out", filepath.Dir(in("full/stable.db", ""))},
		"no such file":                      {"--from", filepath.Join(dir, "none"), "--out", filepath.Join(dir, "out")},
		"not a snapshot":                    {"--from", in("other", "something else"), "--out", filepath.Join(dir, "out")},
		"no HTTP API at http://127.0.0.1:1": {"--http", "http://127.0.0.1:1", "--out", filepath.Join(dir, "out")},
		"backups are whole":                 {"--from", in("short", "zkls\x00\x05"), "--out", filepath.Join(dir, "out")},
	} {
		if _, err := runExport(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused export left a directory: %v", err)
	}
}
