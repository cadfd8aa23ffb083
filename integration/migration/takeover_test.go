//go:build interop

package migration_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/integration/cluster"
)

// TestTakeover: three servers of zk-lite take over from three of Debian's ZooKeeper that were killed under load, by the
// commands of docs/migration.md. No write that was acknowledged is missing, every session goes on with its lock, its
// ephemeral and its watches, zxids and sequence numbers grow.
func TestTakeover(t *testing.T) {
	x := walk{startCutover(t, "", ""), strings.NewReplacer()}
	x.mirror()
	m := startMovers(t, x.servers(), 9, false)
	m.progress(500)
	stays := x.stays()
	x.ready()
	page := commands(t)
	text := x.page(0, page[0]...)
	for _, want := range []string{"systemctl disable --now zookeeper", "--after 0x", "--voters 1,2,3", "unfence"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not have %q:\n%s", want, text)
		}
	}
	m.progress(200)
	if _, err := x.tryFence(0); err == nil || !strings.Contains(err.Error(), "the server runs: process") {
		t.Errorf("fencing a server that runs: %v; want that it is refused", err)
	}
	x.kill(0, 1, 2)
	stopped := time.Now()
	x.values = strings.NewReplacer("ZXID", x.plan.Zxid, "DIGEST", x.plan.Digest, "receipt.json", "receipt-$HOST.json")
	for i := range x.e.Servers {
		x.page(i, page[1]...)
	}
	fenced := time.Now()
	x.fenced = []int{0}
	if _, err := x.execute(x.urls()); err == nil || !strings.Contains(err.Error(), "servers [2 3]") {
		t.Errorf("with one receipt: %v; want that servers 2 and 3 count as alive", err)
	}
	x.page(0, page[3][0]) // call one off, and fence it again
	x.page(0, page[1]...)
	x.fenced = []int{0, 1, 2}
	begun := time.Now()
	said := x.page(0, page[2]...)
	t.Logf("fenced after %v; go took %v: %s", fenced.Sub(stopped), time.Since(begun), said)
	x.z.Leader().Restart()
	if said := x.page(0, page[2]...); !strings.Contains(said, "done before") {
		t.Errorf("again it says %q, want that it was done before", said)
	}
	m.each(5)
	m.check(x.z.ConnectString())
	x.onlyOurs()
	stays()
}

// stays starts a client that knows no addresses but ZooKeeper's, with an ephemeral. What it returns gives these to our
// servers, one at a time, and checks that the client goes on.
func (x *cutover) stays() func() {
	x.Helper()
	c := connected(x.T, x.e.ConnectString())
	id := c.SessionID()
	_, made, err := c.Create(x.Context(), "/stays", nil, client.Ephemeral)
	if err != nil {
		x.Fatal(err)
	}
	return func() {
		x.Helper()
		for i, s := range x.e.Servers {
			_, port, err := net.SplitHostPort(s.Address)
			number, err2 := strconv.Atoi(port)
			if err := errors.Join(err, err2); err != nil {
				x.Fatal(err)
			}
			ours := x.z.Server(i + 1)
			ours.MoveClients(number)
			ours.Restart()
			x.z.WaitServing()
		}
		_, stat, err := c.Exists(x.Context(), "/stays")
		if is := c.SessionID(); err != nil || is != id || stat.Czxid != made.Czxid {
			x.Errorf("at the old addresses: session %v, %+v, %v; want %v, %+v", is, stat, err, id, made)
		}
	}
}

// walk is a cut-over by the page.
type walk struct {
	*cutover
	values *strings.Replacer // of what the page leaves open
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
func (x walk) page(i int, lines ...string) string {
	x.Helper()
	said := ""
	for _, line := range lines {
		if line == "systemctl disable --now zookeeper" {
			x.e.Servers[i].Kill() // at the worst moment
			continue
		}
		line = x.values.Replace(line)
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
			x.Fatalf("running %s: %v, and it says: %s", line, err, out)
		}
		said += string(out)
	}
	return said
}
