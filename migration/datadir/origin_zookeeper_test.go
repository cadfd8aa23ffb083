//go:build zookeeper

package datadir_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/migration/datadir"
	"github.com/zk-lite/zk-lite/znode"
)

var update = flag.Bool("update-origin", false, "write testdata/origin: directories of real servers")

// compression is how a version compresses its snapshots in this test.
func compression(version string) string {
	return map[string]string{zookeeper.V36: "gz", zookeeper.V37: "snappy", zookeeper.V39: "snappy"}[version]
}

// What Load makes of the files of a real server is what a client saw before the server stopped; and a client sees it
// again on a real server that starts from what WriteSnapshot writes.
func TestOrigin(t *testing.T) {
	for _, version := range zookeeper.Versions() {
		t.Run(version, func(t *testing.T) {
			options := zookeeper.Options{
				Version: version, Servers: 1,
				Config: []string{"snapCount=40", "preAllocSize=1"},
				Flags: []string{"-Dzookeeper.snapshot.compression.method=" + compression(version),
					"-Dznode.container.checkIntervalMs=100"},
			}
			s := zookeeper.Run(t, options).Servers[0]
			o := &origin{t: t, address: s.Address, old: version == zookeeper.V34}
			o.work()
			want := o.look()
			s.Kill()
			if *update {
				keep(t, s.DataDir(), version, want)
			}
			before := files(t, s.DataDir())
			r, report := load(t, s.DataDir())
			if after := files(t, s.DataDir()); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("Load has changed the directory")
			}
			diff(t, seen(r), want)
			if o.old != (report.Digests.Equal == 0) && version != zookeeper.V35 {
				t.Errorf("%+v of %s", report.Digests, version)
			}

			options.Data = t.TempDir()
			if _, err := datadir.WriteSnapshot(options.Data, r); err != nil {
				t.Fatalf("WriteSnapshot: %v", err)
			}
			again := zookeeper.Run(t, options).Servers[0]
			o.address = again.Address
			diff(t, o.look(), want)
			again.Kill()
			back, _ := load(t, again.DataDir())
			if back.Digest() != r.Digest() {
				t.Errorf("digest %#x of what the server wrote that started from our snapshot, want %#x", back.Digest(), r.Digest())
			}
		})
	}
}

// keep copies the files of a server to testdata, without zeros at their ends.
func keep(t *testing.T, dir, version string, seen []string) {
	t.Helper()
	to := filepath.Join("testdata", "origin", version)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(to, "version-2"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range files(t, filepath.Join(dir, "version-2")) {
		if strings.HasPrefix(filepath.Base(path), "log.") {
			text = strings.TrimRight(text, "\x00") + strings.Repeat("\x00", 16)
		}
		if err := os.WriteFile(filepath.Join(to, "version-2", filepath.Base(path)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(to, "seen.txt"), []byte(strings.Join(seen, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// origin is a client of a real server.
type origin struct {
	t        *testing.T
	address  string
	old      bool // 3.4: no create2, containers, TTLs
	sessions []string
}

func (o *origin) dial(timeout time.Duration) *cluster.Conn {
	o.t.Helper()
	c, err := cluster.Dial(o.address, cluster.ConnectOptions{Timeout: timeout})
	if err != nil {
		o.t.Fatalf("connecting to %s: %v", o.address, err)
	}
	o.t.Cleanup(c.Drop)
	return c
}

// do sends a request whose answer has this code.
func (o *origin) do(c *cluster.Conn, want znode.Error, op wire.OpCode, r wire.Request) {
	o.t.Helper()
	call := c.Send(op, r)
	if _, err := call.Wait(); call.Err != nil || call.Reply.Err != want {
		o.t.Fatalf("%v %+v = %v, want %v", op, r, err, want)
	}
}

// work writes transactions of every type that clients can cause.
func (o *origin) work() {
	a, b := o.dial(40*time.Second), o.dial(30*time.Second)
	for _, c := range []*cluster.Conn{a, b} {
		o.sessions = append(o.sessions, sessionLine(c.Session.ID, int64(c.Response.TimeoutMillis)))
	}
	open, digest := znode.OpenACL, []znode.ACL{
		{Perms: znode.PermAll, ID: znode.ID{Scheme: "digest", ID: "u:7g8tYbrlh9rkdQD+yqVCTuQaXXI="}},
		{Perms: znode.PermRead, ID: znode.ID{Scheme: "ip", ID: "10.0.0.1"}},
	}
	create := func(c *cluster.Conn, path string, data []byte, acl []znode.ACL, mode znode.Mode) {
		o.t.Helper()
		o.do(c, znode.OK, wire.OpCreate, &wire.CreateRequest{Path: path, Data: data, ACL: acl, Mode: mode})
	}
	create(a, "/app", []byte("one"), open, 0)
	for i := range 12 {
		create(a, "/app/seq-", []byte{byte(i)}, open, znode.PersistentSequential)
		o.do(b, znode.OK, wire.OpSetData, &wire.SetDataRequest{Path: "/app", Data: fmt.Appendf(nil, "v%d", i), Version: -1})
	}
	o.do(a, znode.OK, wire.OpDelete, &wire.DeleteRequest{Path: "/app/seq-0000000003", Version: 0})
	create(a, "/app/null", nil, digest, 0)
	create(a, "/app/empty", []byte{}, digest, 0)
	create(b, "/app/größe", []byte("ünï"), open, 0)
	create(a, "/app/a", nil, open, znode.Ephemeral)
	create(b, "/app/b", []byte("b"), open, znode.EphemeralSequential)
	c := o.dial(20 * time.Second)
	create(c, "/app/c", nil, open, znode.Ephemeral)
	create(c, "/app/d", nil, open, znode.Ephemeral)
	o.do(c, znode.OK, wire.OpCloseSession, &wire.EmptyRequest{})
	o.do(a, znode.OK, wire.OpSetACL, &wire.SetACLRequest{Path: "/app/größe", ACL: digest, Version: 0})
	o.do(a, znode.OK, wire.OpSetACL, &wire.SetACLRequest{Path: "/app", ACL: open, Version: -1})
	o.do(a, znode.ErrNodeExists, wire.OpCreate, &wire.CreateRequest{Path: "/app", ACL: open})
	o.do(b, znode.ErrBadVersion, wire.OpSetData, &wire.SetDataRequest{Path: "/app", Version: 3})
	o.do(b, znode.ErrNotEmpty, wire.OpDelete, &wire.DeleteRequest{Path: "/app", Version: -1})
	o.multis(a, open)
	create(a, "/zookeeper/quota/app", nil, open, 0)
	create(a, "/zookeeper/quota/app/zookeeper_limits", []byte("count=100,bytes=-1"), open, 0)
	create(a, "/zookeeper/quota/app/zookeeper_stats", []byte("count=0,bytes=0"), open, 0)
	create(a, "/app/counted", make([]byte, 20), open, 0)
	o.do(a, znode.OK, wire.OpSetData, &wire.SetDataRequest{Path: "/", Data: []byte("root"), Version: -1})
	if !o.old {
		o.newTypes(a, open)
	}
	o.do(a, znode.OK, wire.OpSetData, &wire.SetDataRequest{Path: "/app/seq-0000000000", Data: nil, Version: 0})
}

func (o *origin) multis(c *cluster.Conn, open []znode.ACL) {
	o.t.Helper()
	ops := []wire.MultiOp{
		{Type: wire.OpCheck, Request: &wire.CheckRequest{Path: "/app/seq-0000000005", Version: 0}},
		{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/m", Data: []byte("m"), ACL: open}},
		{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/m/n", ACL: open, Mode: znode.Ephemeral}},
		{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/app/seq-0000000005", Data: []byte("set"), Version: 0}},
		{Type: wire.OpDelete, Request: &wire.DeleteRequest{Path: "/app/seq-0000000004", Version: -1}},
	}
	o.do(c, znode.OK, wire.OpMulti, &wire.MultiRequest{Ops: ops})
	if _, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: "/m/n"}); err != nil {
		o.t.Fatalf("after the multi: /m/n: %v", err)
	}
	ops[0].Request = &wire.CheckRequest{Path: "/app/seq-0000000005", Version: 9}
	o.do(c, znode.OK, wire.OpMulti, &wire.MultiRequest{Ops: ops}) // its answer has the error inside
}

// newTypes writes what 3.4 does not know, and waits until the server has deleted a container.
func (o *origin) newTypes(c *cluster.Conn, open []znode.ACL) {
	o.t.Helper()
	o.do(c, znode.OK, wire.OpCreate2, &wire.CreateRequest{Path: "/two", ACL: open})
	for _, path := range []string{"/box", "/full"} {
		o.do(c, znode.OK, wire.OpCreateContainer, &wire.CreateRequest{Path: path, ACL: open, Mode: znode.Container})
		o.do(c, znode.OK, wire.OpCreate2, &wire.CreateRequest{Path: path + "/in", ACL: open})
	}
	o.do(c, znode.OK, wire.OpDelete, &wire.DeleteRequest{Path: "/box/in", Version: -1})
	o.do(c, znode.OK, wire.OpCreateTTL, &wire.CreateTTLRequest{
		Path: "/ttl", Data: []byte("t"), ACL: open, Mode: znode.PersistentTTL, TTLMillis: 1 << 39,
	})
	wait.Until(o.t, "the server deletes a container", func() bool {
		_, err := c.Do(wire.OpExists, &wire.ExistsRequest{Path: "/box"})
		return err != nil
	})
}

// look reads everything.
func (o *origin) look() []string {
	o.t.Helper()
	c := o.dial(20 * time.Second)
	o.do(c, znode.OK, wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte(zookeeper.Superuser)})
	lines := slices.Clone(o.sessions)
	var visit func(path string)
	visit = func(path string) {
		data, err := c.Do(wire.OpGetData, &wire.GetDataRequest{Path: path})
		if err != nil {
			o.t.Fatalf("getData %q: %v", path, err)
		}
		acl, err := c.Do(wire.OpGetACL, &wire.GetACLRequest{Path: path})
		if err != nil {
			o.t.Fatalf("getACL %q: %v", path, err)
		}
		children, err := c.Do(wire.OpGetChildren2, &wire.GetChildrenRequest{Path: path})
		if err != nil {
			o.t.Fatalf("getChildren2 %q: %v", path, err)
		}
		d := data.(*wire.GetDataResponse)
		if !system(path) {
			lines = append(lines, line(path, d.Data, &d.Stat, acl.(*wire.GetACLResponse).ACL))
		}
		for _, name := range children.(*wire.GetChildren2Response).Children {
			visit(znode.Join(path, name))
		}
	}
	visit(znode.RootPath)
	o.do(c, znode.OK, wire.OpCloseSession, &wire.EmptyRequest{})
	slices.Sort(lines)
	return lines
}
