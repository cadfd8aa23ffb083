//go:build interop

package interop_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
	"github.com/zk-lite/zk-lite/internal/testkit/seed"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// rounds is how often TestInterop_Mirror kills leaders, and rate the writes per second of its load; a longer run is
// asked for by variables.
var rounds, rate = 2, 400

func init() {
	_, _ = fmt.Sscan(os.Getenv("ZK_LITE_MIRROR_ROUNDS"), &rounds)
	_, _ = fmt.Sscan(os.Getenv("ZK_LITE_MIRROR_RATE"), &rate)
}

// TestInterop_Mirror has an ensemble of three mirror a ZooKeeper ensemble of three under load, whose leader is killed
// now and again, as is the mirror's. In the end all znodes are the same, and no digest has ever differed.
func TestInterop_Mirror(t *testing.T) {
	origin := zookeeper.Run(t, zookeeper.Options{Servers: 3, Version: os.Getenv("ZK_LITE_MIRROR_VERSION")})
	load := startLoad(t, origin.ConnectString())
	e := cluster.Start(t, 3, cluster.Options{})
	m := &mirrorKit{t, e}
	page, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	const first = "\n```\n# in the new ensemble\n"
	blocks := strings.Split(string(page), first)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d blocks for the new ensemble, want 2: this test runs them", len(blocks)-1)
	}
	text := m.shell(blocks[1], origin.Quorum())
	if !strings.Contains(text, "following 127.0.0.1:") || !strings.Contains(text, "zxid there") {
		t.Fatalf("want it to follow, and its state:\n%s", text)
	}
	for range rounds {
		load.more(t, 2*rate)
		leader := origin.Leader()
		leader.Kill()
		m.follow(load)
		leader.Start()
		leader.WaitServing()
		own := e.Leader()
		e.KillAll(own)
		load.more(t, rate)
		m.follow(load)
		e.StartAll()
	}
	load.stop()
	e.WaitServing()
	m.follow(load)
	c := connectTo(t, origin.ConnectString())
	want := dumpOf(t, c, "/")
	for _, s := range e.Servers() {
		m.compare(s, want)
	}
	now, err := m.status()
	if err != nil || now.Digests.Compared == 0 || now.Digests.Differing > 0 || now.Loads != 1 {
		t.Errorf("%+v, %v; want digests, none different, and one snapshot", now, err)
	}
	t.Logf("%d writes, %d failed; %d znodes; %d digests, %d different; lag in ms: p50 %g, p99 %g, of %d transactions",
		load.done.Load(), load.failed.Load(), len(want), now.Digests.Compared, now.Digests.Differing, now.Origin.LagP50MS,
		now.Origin.LagP99MS, now.Origin.Transactions)

	// What was mirrored becomes our own.
	if text := m.shell(blocks[2], ""); !strings.Contains(text, "the mirror has ended") {
		t.Fatalf("stop: want it ended:\n%s", text)
	}
	own := connectTo(t, e.ConnectString())
	path, stat, err := own.Create(t.Context(), "/after", nil, client.Persistent)
	if err != nil || path != "/after" {
		t.Fatalf("a write after the end: %q, %v, want /after", path, err)
	}
	for _, z := range want {
		if stat.Czxid <= z.stat.Mzxid {
			t.Errorf("czxid %v of a new znode, and mzxid %v of %s; want it above all", stat.Czxid, z.stat.Mzxid, z.path)
		}
	}
}

// mirrorKit runs the commands of an operator.
type mirrorKit struct {
	*testing.T
	e *cluster.Ensemble
}

// shell runs the commands of a block of the page, up to its end, with the peer addresses in the place of its own.
func (m *mirrorKit) shell(block, peers string) string {
	m.Helper()
	commands, _, _ := strings.Cut(block, "```")
	commands = strings.ReplaceAll(commands, "zk1:2888,zk2:2888,zk3:2888", peers)
	out, err := m.command("bash", "-c", `set -eu; zk-lite() { command zk-lite "$@" --auth digest:super; }`+"\n"+commands).CombinedOutput()
	if err != nil {
		m.Fatalf("%v, want the commands to work:\n%s\n%s", err, commands, out)
	}
	return string(out)
}

// command is one that finds zk-lite, and its servers, as an administrator.
func (m *mirrorKit) command(name string, args ...string) *exec.Cmd {
	var urls []string
	for _, s := range m.e.Running() {
		urls = append(urls, "http://"+s.HTTPAddr())
	}
	_, password, _ := strings.Cut(cluster.SuperCredentials, ":")
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(os.Getenv(cluster.BinaryVariable))+":"+os.Getenv("PATH"),
		"ZK_LITE_HTTP="+strings.Join(urls, ","), "ZK_LITE_PASSWORD="+password)
	return c
}

func (m *mirrorKit) status() (now body.Mirror, err error) {
	text, err := m.command(os.Getenv(cluster.BinaryVariable), "mirror", "status", "-o", "json", "--auth", "digest:super").Output()
	if err != nil {
		return now, fmt.Errorf("%w: %s", err, text)
	}
	return now, json.Unmarshal(text, &now)
}

// follow waits until the mirror has a write of the load that has not begun yet, or the last one after its end.
func (m *mirrorKit) follow(l *load) (now body.Mirror) {
	m.Helper()
	begun := l.zxid.Load()
	wait.Succeeds(m.T, "the mirror follows", func() (err error) {
		now, err = m.status()
		var zxid int64
		if err == nil {
			_, err = fmt.Sscanf(now.Zxid, "0x%x", &zxid)
		}
		switch {
		case err != nil:
			return err
		case now.State != "following" || zxid <= begun && !l.stopped() || zxid < l.zxid.Load() && l.stopped():
			return fmt.Errorf("%+v, want it beyond %#x", now, begun)
		}
		return nil
	})
	return now
}

// compare compares what a server shows over HTTP with ZooKeeper's znodes.
func (m *mirrorKit) compare(s *cluster.Server, want []znodeOf) {
	m.Helper()
	get := func(target string, into any) error {
		text, err := s.Request(http.MethodGet, target, "")
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	type shown struct {
		Data, Encoding string
		Stat           struct {
			Czxid, Mzxid, Pzxid, EphemeralOwner string
			Ctime, Mtime                        int64
			Version, Cversion, Aversion         int32
			NumChildren, DataLength             int32
		}
	}
	if err := get("/v1/znodes/?consistency=linearizable", new(shown)); err != nil { // it has caught up
		m.Errorf("server %d: %v, want the root", s.ID, err)
	}
	for i := range want {
		z := &want[i]
		var x shown
		path := (&url.URL{Path: z.path}).EscapedPath()
		if err := get("/v1/znodes"+path, &x); err != nil {
			m.Errorf("server %d: %v, want %s", s.ID, err, z.path)
			continue
		}
		data := []byte(x.Data)
		if x.Encoding == "base64" {
			data, _ = base64.StdEncoding.DecodeString(x.Data)
		}
		st := &z.stat
		got := fmt.Sprint(string(data), x.Stat)
		want := fmt.Sprintf("%s{0x%x 0x%x 0x%x 0x%x %d %d %d %d %d %d %d}", z.data, int64(st.Czxid), int64(st.Mzxid),
			int64(st.Pzxid), uint64(st.EphemeralOwner), st.Ctime, st.Mtime, st.Version, st.Cversion, st.Aversion,
			st.NumChildren, st.DataLength)
		if got != want {
			m.Errorf("server %d, %s: %s, want %s", s.ID, z.path, got, want)
		}
	}
}

// znodeOf is a znode as a client sees it.
type znodeOf struct {
	path, data string
	stat       client.Stat
}

// dumpOf reads the znodes below path, but those of the system.
func dumpOf(t *testing.T, c *client.Client, path string) (all []znodeOf) {
	t.Helper()
	data, stat, err := c.Get(t.Context(), path)
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	all = append(all, znodeOf{path, string(data), stat})
	names, _, err := c.Children(t.Context(), path)
	if err != nil {
		t.Fatalf("reading the children of %s: %v", path, err)
	}
	slices.Sort(names)
	for _, name := range names {
		if child := strings.TrimSuffix(path, "/") + "/" + name; child != "/zookeeper" {
			all = append(all, dumpOf(t, c, child)...)
		}
	}
	return all
}

func connectTo(t *testing.T, servers string) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	c, err := client.Connect(ctx, servers, client.WithSessionTimeout(20*time.Second))
	if err != nil {
		t.Fatalf("connecting to %s: %v", servers, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// load writes to an ensemble until it is stopped.
type load struct {
	done, failed atomic.Int64
	zxid         atomic.Int64 // the highest that was acknowledged
	end          context.CancelFunc
	ended        atomic.Bool
	writers      sync.WaitGroup
}

func startLoad(t *testing.T, servers string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{end: cancel}
	t.Cleanup(l.stop)
	const writers = 8
	for i := range writers {
		c := connectTo(t, servers)
		if _, _, err := c.Create(ctx, fmt.Sprintf("/w%d", i), nil, client.Persistent); err != nil {
			t.Fatal(err)
		}
		r := seed.Rand(t)
		l.writers.Go(func() {
			tick := time.NewTicker(time.Second * writers / time.Duration(rate))
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				zxid, err := writeOne(ctx, c, r, fmt.Sprintf("/w%d", i))
				if errors.Is(err, client.ErrConnectionLoss) || errors.Is(err, client.ErrOutcomeUnknown) {
					l.failed.Add(1)
					continue
				}
				l.done.Add(1) // a request that fails is a transaction, too
				for have := l.zxid.Load(); zxid > have && !l.zxid.CompareAndSwap(have, zxid); have = l.zxid.Load() {
				}
			}
		})
	}
	return l
}

// more waits until so many more writes were made.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	want := l.done.Load() + int64(n)
	wait.Until(t, fmt.Sprint(n, " writes more"), func() bool { return l.done.Load() >= want })
}

func (l *load) stop() {
	l.end()
	l.writers.Wait()
	l.ended.Store(true)
}

func (l *load) stopped() bool { return l.ended.Load() }

// writeOne makes one write below a parent, and returns its zxid if it is known. Some fail: they have a transaction, too.
func writeOne(ctx context.Context, c *client.Client, r *rand.Rand, parent string) (int64, error) {
	path := fmt.Sprintf("%s/n%d", parent, r.IntN(60))
	data := make([]byte, r.IntN(200))
	for i := range data {
		data[i] = byte(r.IntN(256))
	}
	var stat client.Stat
	var err error
	switch r.IntN(10) {
	case 0:
		_, stat, err = c.Create(ctx, path, data, client.Persistent)
	case 1:
		_, stat, err = c.Create(ctx, path+"é", data, client.Ephemeral)
	case 2:
		path, stat, err = c.Create(ctx, parent+"/q-", nil, client.PersistentSequential)
		if err == nil && r.IntN(10) > 0 {
			err = c.Delete(ctx, path, client.AnyVersion)
		}
	case 3:
		err = c.Delete(ctx, path, client.AnyVersion)
	case 4:
		m := c.Multi()
		m.Set(path, data, client.AnyVersion)
		m.Create(path+"m", nil, client.Ephemeral)
		m.Delete(path+"m", client.AnyVersion)
		err = m.Commit(ctx)
	case 5:
		stat, err = c.SetACL(ctx, path, append(client.OpenACL(), client.ACL{
			Perms: client.PermRead, ID: client.ID{Scheme: "digest", ID: fmt.Sprint("u:", r.IntN(9))},
		}), client.AnyVersion)
	default:
		stat, err = c.Set(ctx, path, data, client.AnyVersion)
	}
	return int64(stat.Mzxid), err
}

// TestInterop_Mirror_TLSAndSASL has a server mirror, by its settings alone, an ensemble whose servers prove themselves to
// each other by certificates and passwords.
func TestInterop_Mirror_TLSAndSASL(t *testing.T) {
	o := zookeeper.Options{Servers: 3}
	authority := certs.Authority(t, "quorum")
	o.WithTLS(t, authority)
	o.WithSASL(t)
	origin := zookeeper.Run(t, o)
	c := connectTo(t, origin.ConnectString())
	if _, _, err := c.Create(t.Context(), "/secret", []byte("data"), client.Persistent); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(o.Config, "\n") + "\n"
	for _, flag := range o.Flags {
		text += strings.TrimPrefix(flag, "-D") + "\n"
	}
	file := certs.Write(t, filepath.Join(t.TempDir(), "zoo.cfg"), []byte(text))
	e := cluster.Start(t, 1, cluster.Options{Config: map[string]string{
		"mirror.from": origin.Quorum(), "mirror.config": file,
	}})
	m := &mirrorKit{t, e}
	wait.Succeeds(t, "the mirror follows", func() error {
		_, err := m.status()
		return err
	})
	m.compare(e.Server(1), dumpOf(t, c, "/"))
}
