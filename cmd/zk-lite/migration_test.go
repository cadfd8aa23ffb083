//go:build interop

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/ports"
	"github.com/zk-lite/zk-lite/internal/testkit/process"
	"github.com/zk-lite/zk-lite/internal/testkit/wait"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// annSecret is the identity with which the znodes of everything can be read in full.
const annSecret = "ann:secret"

// movers are the three hosts of docs/migration.md.
type movers struct {
	t     *testing.T
	dir   string
	zk    *zookeeper.Ensemble
	own   [3]*process.Process
	http  []int
	zxids [3]string // of the last transaction in the newest log
	out   string    // of the last block
}

// TestDocs_Migration walks through the page: every command in it runs, on three servers of ZooKeeper 3.8 and then three
// of ours on the same ports, and back; clients stay connected, and keep their sessions and ephemerals both ways.
func TestDocs_Migration(t *testing.T) {
	zk := zookeeper.Run(t, zookeeper.Options{Servers: 3, Config: []string{ // which accept ACLs of these schemes
		"authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
		"authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
	}})
	m := &movers{t: t, dir: t.TempDir(), zk: zk, http: ports.Take(t, 3)}
	for i, s := range m.zk.Servers {
		m.host(i, s)
	}
	servers := m.zk.ConnectString()
	clients := everything(t, servers)
	ids := sessionsOf(clients)
	want := look(t, servers, annSecret)
	blocks := slices.DeleteFunc(blocksOf(t, "../../docs/migration.md", ""), func(b string) bool {
		// TestInterop_Mirror and TestTakeover run them.
		return strings.HasPrefix(b, "# in the new ensemble\n") || strings.HasPrefix(b, "# cut over")
	})
	if len(blocks) != 7 {
		t.Fatalf("the page has %d blocks of commands, want 7: this test has a check after each", len(blocks))
	}
	m.run(blocks[:4]) // prepare, stop, import, start
	m.await("zk-lite")
	m.same("at zk-lite", look(t, servers, annSecret), want)
	m.run(blocks[4:5])
	if !strings.Contains(m.out, "leader") {
		t.Errorf("status shows no leader:\n%s", m.out)
	}
	m.keep("at zk-lite", clients, ids)
	stranger, err := client.Connect(t.Context(), servers)
	if err != nil {
		t.Fatal(err)
	}
	m.run(blocks[5:6]) // export
	id := fmt.Sprintf("0x%x", uint64(stranger.SessionID()))
	if !regexp.MustCompile(`cannot resume in ZooKeeper.*: 1: ` + id + `\n`).MatchString(m.out) {
		t.Errorf("the export says\n%s\nwant that session %s alone is lost", m.out, id)
	}
	_ = stranger.Close()
	m.run(blocks[6:]) // stop, start ZooKeeper
	m.await("ZooKeeper")
	m.same("back at ZooKeeper", look(t, servers, annSecret), want)
	m.keep("back at ZooKeeper", clients, ids)
}

func sessionsOf(clients []*client.Client) (ids []client.SessionID) {
	for _, c := range clients {
		ids = append(ids, c.SessionID())
	}
	return ids
}

// host gives a host its directories and ZooKeeper's configuration, with a port for our HTTP API.
func (m *movers) host(i int, s *zookeeper.Server) {
	m.t.Helper()
	cfg, err := os.ReadFile(s.ConfigFile())
	if err != nil {
		m.t.Fatal(err)
	}
	// Without a superuser, who may read a server's files is its administrator.
	text := regexp.MustCompile("(?m)^DigestAuthenticationProvider.superDigest=.*\n").ReplaceAllString(string(cfg), "")
	text = strings.Replace(text, "admin.enableServer=false", fmt.Sprintf("admin.serverPort=%d", m.http[i]), 1)
	if err := os.MkdirAll(m.at(i, "zk-lite"), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.at(i, "zookeeper.cfg"), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *movers) at(i int, name string) string {
	return filepath.Join(m.dir, fmt.Sprintf("host-%d", i+1), name)
}

// run runs blocks, each on the hosts that its first line names.
func (m *movers) run(blocks []string) {
	m.t.Helper()
	for _, block := range blocks {
		where, commands, _ := strings.Cut(block, "\n")
		hosts := []int{0, 1, 2}
		switch where {
		case "# on each host":
		case "# on one host":
			hosts = hosts[:1]
		case "# on that host":
			hosts = []int{slices.Index(m.zxids[:], slices.MaxFunc(m.zxids[:], compareHex))}
		default:
			m.t.Fatalf("the block does not begin with the hosts:\n%s", block)
		}
		m.out = ""
		for _, i := range hosts {
			for line := range strings.Lines(commands) {
				m.line(i, strings.TrimSpace(line))
			}
		}
	}
}

func compareHex(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// line runs one command at a host; the kits do what systemd would.
func (m *movers) line(i int, line string) {
	m.t.Helper()
	switch line {
	case "systemctl disable --now zookeeper":
		m.zk.Servers[i].Stop()
		return
	case "systemctl enable --now zookeeper":
		m.zk.Servers[i].Start()
		return
	case "systemctl disable --now zk-lite":
		if err := m.own[i].Stop(wait.Patience); err != nil {
			m.t.Fatalf("server %d of ours: %v:\n%s", i+1, err, m.own[i].Tail())
		}
		return
	case "systemctl enable --now zk-lite":
		p, err := process.Start(process.Command{
			Args: []string{"zk-lite", "server", "--config", m.at(i, "zk-lite.cfg")}, Log: m.at(i, "log"),
		})
		if err != nil {
			m.t.Fatal(err)
		}
		m.t.Cleanup(p.Kill)
		m.own[i] = p
		return
	}
	s := m.zk.Servers[i]
	command := strings.NewReplacer(
		"/etc/zookeeper/conf/zoo.cfg", m.at(i, "zookeeper.cfg"), "/etc/zk-lite/zoo.cfg", m.at(i, "zk-lite.cfg"),
		"/var/lib/zookeeper", s.DataDir(), "/var/lib/zk-lite", m.at(i, "zk-lite"), "/srv/back", filepath.Join(m.dir, "back"),
	).Replace(line)
	cmd := exec.CommandContext(m.t.Context(), "bash", "-c", "set -euo pipefail\n"+command)
	cmd.Env = append(os.Environ(), "ZK_LITE_SERVER="+s.Address, fmt.Sprintf("ZK_LITE_HTTP=http://127.0.0.1:%d", m.http[i]))
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s, on host %d: %v\n%s", line, i+1, err, out)
	}
	m.out += string(out)
	if last := regexp.MustCompile(`zxid 0x([0-9a-f]+) `).FindSubmatch(out); last != nil && strings.HasPrefix(line, "zk-lite inspect") {
		m.zxids[i] = string(last[1])
	}
}

// await waits until all servers serve clients.
func (m *movers) await(what string) {
	m.t.Helper()
	for i, s := range m.zk.Servers {
		wait.Until(m.t, what+" serves", func() bool {
			if what == "zk-lite" {
				if err := m.own[i].EndedEarly(); err != nil {
					m.t.Fatalf("server %d of ours: %v:\n%s", i+1, err, m.own[i].Tail())
				}
			}
			return s.Mode() != ""
		})
	}
}

func (m *movers) same(where string, have, want []seen) {
	m.t.Helper()
	if len(have) != len(want) {
		m.t.Errorf("%s: %d znodes, want %d", where, len(have), len(want))
	}
	for i := range min(len(have), len(want)) {
		h, w := have[i], want[i]
		if h.path != w.path || !bytes.Equal(h.data, w.data) || (h.data == nil) != (w.data == nil) || h.stat != w.stat ||
			!slices.Equal(h.acl, w.acl) {
			m.t.Errorf("%s: %+v, want %+v", where, h, w)
		}
	}
}

// keep checks that clients are connected again by themselves, with the sessions that they had.
func (m *movers) keep(where string, clients []*client.Client, ids []client.SessionID) {
	m.t.Helper()
	for _, c := range clients {
		if _, _, err := c.Get(m.t.Context(), "/app"); err != nil {
			m.t.Errorf("%s: a client of ZooKeeper's: %v, want that it goes on", where, err)
		}
	}
	if now := sessionsOf(clients); !slices.Equal(now, ids) {
		m.t.Errorf("%s: the sessions are %x, want %x as before", where, now, ids)
	}
}
