//go:build clients

package clients

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// program is a version's checks, ready to be run.
type program struct {
	source  string   // its path in integration
	runtime string   // what it runs on
	command []string // the connect string follows
	tls     []string // the same over TLS, if it differs
	noTLS   bool
}

// client is a row of the table.
type client struct {
	name, version string
	build         func(t *testing.T, version string) program
}

// rows are the clients in the order of the page.
func rows() (all []client) {
	add := func(name string, build func(*testing.T, string) program, versions ...string) {
		for _, v := range versions {
			all = append(all, client{name, v, build})
		}
	}
	add("Java", java, zookeeper.Versions()...)
	add("Curator", curator, "2.13.0", "4.3.0", "5.2.1", "5.9.0")
	add("kazoo", kazoo, "2.8.0", "2.9.0", "2.10.0", "2.11.0")
	add("C", c, debianC, "3.8.0", "3.9.3")
	add("go-zookeeper/zk", goZookeeper, "v1.0.2", "v1.0.3", "v1.0.4")
	add("samuel/go-zookeeper", goZookeeper, "v0.0.0-20201211165307-7117e9ea2414")
	add("node-zookeeper-client", node("node-zookeeper-client"), "1.1.3")
	add("zookeeper of npm", node("zookeeper"), "7.3.0")
	add("zookeeper-client of Rust", rust("zookeeper-client"), "0.11.2")
	add("zookeeper of Rust", rust("zookeeper"), "0.8.0")
	return all
}

// TestClients runs every client whose name and version match -run. A check that fails has to fail on ZooKeeper, too.
func TestClients(t *testing.T) {
	for _, c := range rows() {
		t.Run(strings.ReplaceAll(c.name, "/", "-")+" "+c.version, func(t *testing.T) {
			dir := t.TempDir()
			config, _, _ := cluster.TLS(t, dir)
			config["znode.container.checkIntervalMs"] = "500"
			p := c.build(t, c.version)
			var got []result
			for _, transport := range []string{plain, secured} {
				if transport == secured && p.noTLS {
					continue
				}
				r := run(t, cluster.Start(t, 3, cluster.Options{Config: config}), dir, p, transport)
				r.client, r.version, r.runtime, r.transport, r.program = c.name, c.version, p.runtime, transport, p.source
				if len(r.failed) > 0 {
					r.failed = alsoOnZooKeeper(t, dir, config, p, r)
				}
				got = append(got, r)
			}
			if *update && !t.Failed() {
				record(t, got)
			}
		})
	}
}

// run drives a program once.
func run(t *testing.T, e *cluster.Ensemble, dir string, p program, transport string) (r result) {
	t.Helper()
	command := slices.Clone(p.command)
	if transport == secured {
		if p.tls != nil {
			command = slices.Clone(p.tls)
		}
		command = append([]string{"env", cluster.TLSVariable + "=" + dir}, command...)
		for i := range command {
			command[i] = strings.ReplaceAll(command[i], "$TLS", dir)
		}
	}
	e.Drive(t, t.TempDir(), func(c cluster.Check) {
		switch {
		case c.Absent:
			r.absent = append(r.absent, c.Name)
		case c.OK:
			r.passed = append(r.passed, c.Name)
		default:
			r.failed = append(r.failed, c.Name)
			t.Logf("%s, %s: %s failed: %s", e.Name, transport, c.Name, c.Detail)
		}
	}, append(command, e.ConnectString())...)
	e.StartAll()
	e.WaitServing()
	if e.Name == "zk-lite" {
		e.CheckReplicas()
	}
	return r
}

// alsoOnZooKeeper runs a program that failed against ZooKeeper, and returns the failures with what it found.
func alsoOnZooKeeper(t *testing.T, dir string, config map[string]string, p program, r result) (failed []string) {
	t.Helper()
	config = maps.Clone(config)
	// What its TLS needs.
	config["serverCnxnFactory"] = "org.apache.zookeeper.server.NettyServerCnxnFactory"
	config["authProvider.x509"] = "org.apache.zookeeper.server.auth.X509AuthenticationProvider"
	// Its zoo.cfg cannot set this.
	options := cluster.Options{Config: config, JavaFlags: []string{"-Dznode.container.checkIntervalMs=500"}}
	control := run(t, cluster.StartZooKeeper(t, 3, options), dir, p, r.transport)
	for _, name := range r.failed {
		if !slices.Contains(control.failed, name) {
			t.Errorf("%s, %s: failed on zk-lite alone", name, r.transport)
		}
		failed = append(failed, name+" (also on ZooKeeper)")
	}
	return failed
}

// record puts results into results.txt, in the order of the rows.
func record(t *testing.T, got []result) {
	t.Helper()
	at := map[string]int{}
	for i, c := range rows() {
		at[c.name+" "+c.version+" "+plain], at[c.name+" "+c.version+" "+secured] = 2*i, 2*i+1
	}
	lines := make([]string, 2*len(at))
	for _, r := range append(readResults(t), got...) {
		if i, known := at[r.key()]; known {
			lines[i] = r.String() + "\n"
		}
	}
	text := "# client | version | runs on | transport | program | passed | failed | absent (written by make clients RECORD=1)\n"
	if err := os.WriteFile("results.txt", []byte(text+strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
