//go:build interop

package migration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// TestTakeover: three servers of zk-lite take over from three of ZooKeeper 3.8.0 that were killed under load. No write
// that was acknowledged is missing, every session goes on with its ephemeral, zxids and sequence numbers grow.
func TestTakeover(t *testing.T) {
	e := zookeeper.Start(t, 3)
	z := cluster.Start(t, 3, cluster.Options{Config: map[string]string{"maxSessionTimeout": "60000"}})
	x := &takenOver{t: t, e: e, z: z, dir: t.TempDir(), plan: strings.NewReplacer()}
	x.run("mirror", "--from", e.Quorum())
	workers := x.load(9)
	x.progress(workers, 500)

	var plan body.Takeover
	wait.Succeeds(t, "nothing is in the way", func() error {
		out, err := x.try("takeover", "--plan", "-o", "json")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return json.Unmarshal(out, &plan)
	})
	if len(plan.Voters) != 3 || plan.Need != 2 {
		t.Fatalf("the plan is %+v; want three voters, two of them to be fenced", plan)
	}
	page := commands(t)
	text := x.page(0, page[0]...)
	for _, want := range []string{"systemctl disable --now zookeeper", "--after 0x", "--voters 1,2,3", "unfence"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not have %q:\n%s", want, text)
		}
	}
	x.progress(workers, 200)
	if out, err := x.fence(0, &plan); err == nil || !strings.Contains(string(out), "the server runs: process") {
		t.Errorf("fencing a server that runs: %v, %s; want that it is refused", err, out)
	}
	for _, s := range e.Servers {
		s.Kill()
	}
	stopped := time.Now()
	x.plan = strings.NewReplacer("ZXID", plan.Zxid, "DIGEST", plan.Digest, "receipt.json", "receipt-$HOST.json")
	for i := range e.Servers {
		x.page(i, page[1]...)
	}
	fenced := time.Now()
	one := filepath.Join(x.dir, "receipt-1.json")
	out, err := x.try("takeover", "--go", "--receipt", one)
	if err == nil || !strings.Contains(string(out), "servers [2 3]") {
		t.Errorf("with one receipt: %v, %s; want that servers 2 and 3 count as alive", err, out)
	}
	x.page(0, page[3][0]) // call one off, and fence it again
	x.page(0, page[1]...)
	begun := time.Now()
	said := x.page(0, page[2]...)
	t.Logf("fenced after %v; go took %v: %s", fenced.Sub(stopped), time.Since(begun), said)
	z.Leader().Restart()
	if said := x.page(0, page[2]...); !strings.Contains(said, "done before") {
		t.Errorf("again it says %q, want that it was done before", said)
	}
	for _, w := range workers {
		w.resumed.Store(0)
	}
	for _, w := range workers {
		wait.Until(t, fmt.Sprintf("client %d writes again", w.n), func() bool { return w.resumed.Load() >= 5 })
	}
	x.stop()
	x.check(workers)
}

// takenOver is both ensembles and what clients do.
type takenOver struct {
	t    *testing.T
	e    *zookeeper.Ensemble
	z    *cluster.Ensemble
	dir  string // for receipts
	plan *strings.Replacer
	stop func() // ends the load
}

// commands are those of docs/migration.md, by its blocks for a cut-over.
func commands(t *testing.T) (all [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```\n# cut over")[1:] {
		block, _, _ = strings.Cut(block, "```")
		all = append(all, strings.Split(strings.TrimSpace(block), "\n")[1:])
	}
	if len(all) != 4 {
		t.Fatalf("docs/migration.md has %d blocks for a cut-over, want 4: plan, fence, go, call off", len(all))
	}
	return all
}

// page runs commands of the page on a host, and returns what they print.
func (x *takenOver) page(i int, lines ...string) string {
	x.t.Helper()
	said := ""
	for _, line := range lines {
		if line == "systemctl disable --now zookeeper" {
			x.e.Servers[i].Kill() // at the worst moment
			continue
		}
		line = x.plan.Replace(line)
		line = strings.NewReplacer("$HOST", fmt.Sprint(i+1), "/var/lib/zookeeper",
			x.e.Servers[i].DataDir()).Replace(line)
		if strings.HasPrefix(line, "zk-lite takeover --") {
			line += " --auth digest:" + cluster.SuperCredentials
		}
		c := exec.Command("bash", "-c", `zk-lite() { "$ZK_LITE_TEST_BINARY" "$@"; }; `+line)
		c.Dir = x.dir
		c.Env = append(os.Environ(), "ZK_LITE_HTTP="+x.urls())
		out, err := c.CombinedOutput()
		if err != nil {
			x.t.Fatalf("running %s: %v, and it says: %s", line, err, out)
		}
		said += string(out)
	}
	return said
}

func (x *takenOver) urls() string {
	var urls []string
	for _, s := range x.z.Servers() {
		urls = append(urls, "http://"+s.HTTPAddr())
	}
	return strings.Join(urls, ",")
}

// try runs a command, at the ensemble of zk-lite, and returns what it prints; with an error also what it complains of.
func (x *takenOver) try(args ...string) ([]byte, error) {
	if args[0] != "takeover" || args[1] != "fence" {
		args = append(args, "--http", x.urls(), "--auth", "digest:"+cluster.SuperCredentials)
	}
	c := exec.Command(os.Getenv(cluster.BinaryVariable), args...)
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		out = append(out, complaint.String()...)
	}
	return out, err
}

func (x *takenOver) run(args ...string) string {
	x.t.Helper()
	out, err := x.try(args...)
	if err != nil {
		x.t.Fatalf("running zk-lite %q: %v, and it says: %s", args, err, out)
	}
	return string(out)
}

func (x *takenOver) fence(i int, p *body.Takeover) ([]byte, error) {
	return x.try("takeover", "fence", "--data-dir", x.e.Servers[i].DataDir(), "--after", p.Zxid, "--digest", p.Digest,
		"--voters", "1,2,3")
}

// mover is a client with an ephemeral that creates sequential znodes.
type mover struct {
	n       int
	c       *client.Client
	id      client.SessionID
	acked   []string // only write's goroutine, until the load has ended
	zxids   []client.Zxid
	count   atomic.Int64 // of acked
	resumed atomic.Int64 // of acked, since it was set to 0
}

// load starts clients that know the servers of both sides.
func (x *takenOver) load(n int) (all []*mover) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(x.t.Context())
	var running sync.WaitGroup
	x.stop = func() {
		cancel()
		running.Wait()
	}
	for i := range n {
		// Some are at zk-lite already, which relays what they write.
		c, err := client.Connect(ctx, x.e.ConnectString()+","+x.z.ConnectString(),
			client.WithSessionTimeout(30*time.Second))
		if err == nil && i == 0 {
			_, _, err = c.Create(ctx, "/q", nil, client.Persistent)
		}
		if err == nil {
			_, _, err = c.Create(ctx, fmt.Sprintf("/e-%d", i), nil, client.Ephemeral)
		}
		if err != nil {
			x.t.Fatal(err)
		}
		w := &mover{n: i, c: c, id: c.SessionID()}
		x.t.Cleanup(func() { _ = c.Close() })
		running.Go(func() { w.write(ctx) })
		all = append(all, w)
	}
	return all
}

// write creates znodes until ctx ends. The outcome of one whose connection broke is not known.
func (w *mover) write(ctx context.Context) {
	for ctx.Err() == nil {
		path, stat, err := w.c.Create(ctx, "/q/n-", []byte("data"), client.PersistentSequential)
		if err != nil {
			continue
		}
		w.acked, w.zxids = append(w.acked, path), append(w.zxids, stat.Czxid)
		w.count.Add(1)
		w.resumed.Add(1)
	}
}

// progress waits until so many more znodes were created.
func (x *takenOver) progress(workers []*mover, n int64) {
	x.t.Helper()
	sum := func() (n int64) {
		for _, w := range workers {
			n += w.count.Load()
		}
		return n
	}
	want := sum() + n
	wait.Until(x.t, "znodes are created", func() bool { return sum() >= want })
}

// check compares what clients remember with what the ensemble shows.
func (x *takenOver) check(workers []*mover) {
	x.t.Helper()
	c, err := client.Connect(x.t.Context(), x.z.ConnectString())
	if err != nil {
		x.t.Fatal(err)
	}
	defer c.Close()
	names, _, err := c.Children(x.t.Context(), "/q")
	if err != nil {
		x.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, name := range names {
		there["/q/"+name] = true
	}
	acked, lost := 0, 0
	for _, w := range workers {
		last, number := client.Zxid(0), -1
		for i, path := range w.acked {
			n, err := strconv.Atoi(strings.TrimPrefix(path, "/q/n-"))
			if err != nil || n <= number || w.zxids[i] <= last {
				x.t.Errorf("client %d created %s with zxid %v after number %d with %v (%v)", w.n, path, w.zxids[i],
					number, last, err)
			}
			if acked++; !there[path] {
				lost++
			}
			last, number = w.zxids[i], n
		}
		if id := w.c.SessionID(); id != w.id {
			x.t.Errorf("client %d has session %v, and had %v", w.n, id, w.id)
		}
		_, stat, err := c.Exists(x.t.Context(), fmt.Sprintf("/e-%d", w.n))
		if err != nil || stat.EphemeralOwner != w.id {
			x.t.Errorf("the ephemeral of client %d: %+v, %v; want one of session %v", w.n, stat, err, w.id)
		}
	}
	x.t.Logf("%d acknowledged, %d of them missing, %d there", acked, lost, len(names))
	if lost > 0 {
		x.t.Errorf("%d acknowledged znodes are missing", lost)
	}
}
