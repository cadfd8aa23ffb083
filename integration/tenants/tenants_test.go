//go:build tenants

package tenants

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/certs"
)

var (
	duration = flag.Duration("tenants.for", 5*time.Minute, "how long they work while leaders are killed")
	only     = flag.String("tenants.only", "", "the tenants to run, with commas; all if empty")
)

const (
	// startPatience is how long a tenant may take from its start to its work, and from the sign to finish to its end.
	startPatience = 5 * time.Minute
	// between is from the death of a leader to that of the next one.
	between = 20 * time.Second
)

// commands start the tenants that are not programs in Java, with the servers' addresses as the last argument.
var commands = map[string]func(t *testing.T, keys string) []string{
	"clickhouse": func(t *testing.T, _ string) []string {
		cluster.NeedTool(t, "/usr/sbin/clickhouse-server", "clickhouse-server")
		return python(t, "clickhouse")
	},
	"patroni": func(t *testing.T, keys string) []string {
		cluster.NeedTool(t, "/usr/bin/patroni", "patroni")
		cluster.NeedTool(t, "/usr/lib/postgresql/15/bin/initdb", "postgresql-15")
		return python(t, "patroni", keys)
	},
}

// javaFlags are further flags for Java.
var javaFlags = map[string][]string{
	"flink": {"-Dzookeeper.clientCnxnSocket=" +
		"org.apache.flink.shaded.zookeeper3.org.apache.zookeeper.ClientCnxnSocketNetty"},
}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// TestTenants starts all systems on one ensemble, kills its leader again and again while they work, and asks them in the
// end what they have lost.
func TestTenants(t *testing.T) {
	e, keys := ensemble(t)
	var all []*run
	for _, s := range tenants {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), s.name) {
			continue
		}
		command := commands[s.name]
		if command == nil {
			command = func(t *testing.T, keys string) []string { return java(t, s.name, keys) }
		}
		r := &run{tenant: s, ready: make(chan struct{}), ended: make(chan struct{})}
		r.program = cluster.StartProgram(t, r.hear, append(command(t, keys), e.ConnectString())...)
		r.await(t, r.ready, "is at work")
		all = append(all, r)
	}
	if len(all) == 0 {
		t.Fatalf("-tenants.only=%s names none of the systems", *only)
	}
	deaths := killLeaders(e)
	for _, r := range all {
		r.program.Say("finish")
		r.await(t, r.ended, "has finished")
	}
	e.CheckReplicas()
	results := read(t)
	for _, r := range all {
		r.did.ran, r.did.deaths = duration.String(), deaths
		for _, w := range r.wrong {
			t.Errorf("%s has lost or broken something: %s", r.name, w)
		}
		if len(r.did.work) == 0 {
			t.Errorf("%s has done nothing", r.name)
		}
		t.Logf("%s: %+v", r.name, r.did)
		results[r.name] = r.did
	}
	if *update && !t.Failed() {
		results.write(t)
		writePage(t, results)
	}
}

// ensemble is three servers that take TLS, with certificates on both sides, beside plain connections, and a directory of
// ca.pem and client.pem.
func ensemble(t *testing.T) (e *cluster.Ensemble, keys string) {
	t.Helper()
	keys = t.TempDir()
	ca := certs.Authority(t, "tenants")
	trust := certs.Write(t, keys+"/ca.pem", ca.CertPEM())
	certs.Write(t, keys+"/client.pem", ca.Issue(t, "client", nil).KeyPEM(t))
	return cluster.Start(t, 3, cluster.Options{Config: map[string]string{
		"client.portUnification":  "true",
		"ssl.keyStore.location":   certs.Write(t, keys+"/server.pem", ca.Issue(t, "server", nil).KeyPEM(t)),
		"ssl.trustStore.location": trust,
		"tickTime":                "2000", // the tenants ask for sessions of seconds
	}}), keys
}

// killLeaders kills leaders until the time is over, and returns how many.
func killLeaders(e *cluster.Ensemble) (deaths int) {
	pace := time.NewTicker(between)
	defer pace.Stop()
	for end := time.Now().Add(*duration); time.Now().Before(end); deaths++ {
		<-pace.C
		dead := e.Leader()
		dead.Kill()
		e.Leader()
		dead.Start()
		e.WaitServing()
	}
	return deaths
}

// java compiles a tenant's Java program beside what its pom.xml names. Both stay in bin/tenants.
func java(t *testing.T, name, keys string) []string {
	t.Helper()
	out, err := filepath.Abs("../../bin/tenants/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(out+"/classes", 0o755); err != nil {
		t.Fatal(err)
	}
	mvn := cluster.NeedTool(t, "/usr/bin/mvn", "maven")
	javac := cluster.NeedTool(t, "/usr/bin/javac", "default-jdk-headless")
	cluster.Execute(t, name, mvn, "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile="+out+"/classpath")
	classPath, err := os.ReadFile(out + "/classpath")
	if err != nil {
		t.Fatal(err)
	}
	directory, err := filepath.Abs(name) // settings of the tenant's logging
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{out + "/classes", directory, string(classPath)}, ":")
	cluster.Execute(t, ".", javac, "-nowarn", "-encoding", "UTF-8", "-d", out+"/classes", "-cp", path,
		"-Xprefer:source", "-implicit:class", "-sourcepath", "java:"+name, "java/Child.java", name+"/Tenant.java")
	ssl := "-Dzookeeper.ssl."
	command := []string{"java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.client.secure=true",
		"-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
		ssl + "keyStore.location=" + keys + "/client.pem", ssl + "keyStore.type=PEM",
		ssl + "trustStore.location=" + keys + "/ca.pem", ssl + "trustStore.type=PEM"}
	return append(append(command, javaFlags[name]...), "-cp", path, "Report")
}

// python runs a tenant's script, with python/report.py, as a user who is not root to the system, in a space of processes
// that ends with the script, and whose first one, a shell, takes in the ends of processes that others leave behind.
func python(t *testing.T, name string, arguments ...string) []string {
	t.Helper()
	var at [2]string
	for i, path := range []string{"python", name + "/tenant.py"} {
		var err error
		if at[i], err = filepath.Abs(path); err != nil {
			t.Fatal(err)
		}
	}
	command := []string{cluster.NeedTool(t, "/usr/bin/unshare", "util-linux"), "--user", "--map-user=65534",
		"--map-group=65534", "--pid", "--fork", "--kill-child", "--mount-proc",
		"/bin/sh", "-c", `"$@"; exit $?`, "sh", "/usr/bin/env", "PYTHONPATH=" + at[0],
		cluster.NeedTool(t, "/usr/bin/python3", "python3"), "-B", at[1]}
	return append(command, arguments...)
}

// run is one tenant's program.
type run struct {
	tenant
	program *cluster.Program
	ready   chan struct{} // closed when it works
	ended   chan struct{} // closed when it has said all

	mu    sync.Mutex
	did   done
	wrong []string
}

// hear takes in a line that the program prints. Those that do not begin with "tenant: " are the system's own.
func (r *run) hear(line string) {
	line, mine := strings.CutPrefix(line, "tenant: ")
	if !mine {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kind, text, _ := strings.Cut(line, " ")
	switch kind {
	case "ready":
		close(r.ready)
	case "work":
		r.did.work = append(r.did.work, text)
	case "saw":
		r.did.saw = append(r.did.saw, text)
	case "wrong":
		r.wrong = append(r.wrong, text)
	case "end":
		close(r.ended)
	default:
		r.wrong = append(r.wrong, fmt.Sprintf("its program says %q, which is no kind of line", line))
	}
}

func (r *run) await(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-event:
	case <-r.ended:
		if event != r.ended {
			t.Fatalf("%s has ended before it %s: %q", r.name, what, r.wrong)
		}
	case <-time.After(startPatience):
		t.Fatalf("%s: not within %v: it %s", r.name, startPatience, what)
	}
	t.Logf("%s %s", r.name, what)
}

func (r results) write(t *testing.T) {
	t.Helper()
	var b strings.Builder
	b.WriteString(fileHeader)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		d := r[name]
		fmt.Fprintf(&b, "%s ran %s %d\n", name, d.ran, d.deaths)
		for _, w := range d.work {
			fmt.Fprintf(&b, "%s work %s\n", name, w)
		}
		for _, s := range d.saw {
			fmt.Fprintf(&b, "%s saw %s\n", name, s)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
