//go:build clients

package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// here is the absolute path of a file of this directory.
func here(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// says is the first line that a command prints.
func says(t *testing.T, args ...string) string {
	t.Helper()
	line, _, _ := strings.Cut(cluster.Execute(t, t.TempDir(), args...), "\n")
	return strings.TrimSpace(line)
}

// java compiles the checks against a version of ZooKeeper's own client. 3.4 knows no TLS.
func java(t *testing.T, version string) program {
	t.Helper()
	classPath, err := zookeeper.Jars(version)
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, classPath, "Checks", version == zookeeper.V34)
}

// curator compiles them against a version of Curator and the client that it comes with.
func curator(t *testing.T, version string) program {
	t.Helper()
	dir := t.TempDir()
	cluster.Execute(t, dir, "mvn", "-q", "-B", "-f", here(t, "java/pom.xml"), "-Dcurator="+version,
		"dependency:copy-dependencies", "-DoutputDirectory="+dir)
	return compiled(t, dir+"/*", "CuratorChecks", version < "4")
}

// compiled is a class with its libraries. The client of 3.4 takes the text of an unresolved address for its host name,
// which since Java 14 is another one: a file of hosts has that, too.
func compiled(t *testing.T, classPath, class string, like34 bool) program {
	t.Helper()
	javac := cluster.NeedTool(t, "/usr/bin/javac", "default-jdk-headless")
	dir := t.TempDir()
	cluster.Execute(t, dir, javac, "-encoding", "UTF-8", "-nowarn", "-cp", classPath, "-d", dir, "-sourcepath",
		here(t, "java"), here(t, "java/"+class+".java"))
	command := []string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", dir + ":" + classPath}
	if like34 {
		hosts := filepath.Join(dir, "hosts")
		if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost 127.0.0.1/<unresolved>\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		command = append(command, "-Djdk.net.hosts.file="+hosts)
	}
	const ssl = "-Dzookeeper.ssl."
	return program{
		source:  "clients/java/" + class + ".java",
		runtime: "Java " + strings.Fields(strings.ReplaceAll(says(t, javac, "-version"), "javac ", ""))[0],
		command: append(slices.Clone(command), class),
		tls: append(slices.Clone(command), "-Dzookeeper.client.secure=true",
			"-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
			ssl+"keyStore.location=$TLS/client.pem", ssl+"trustStore.location=$TLS/ca.pem", class),
		noTLS: like34,
	}
}

// kazoo installs a version of it beside the interpreter's own packages.
func kazoo(t *testing.T, version string) program {
	t.Helper()
	python := cluster.NeedTool(t, "/usr/bin/python3", "python3 python3-pip")
	dir := t.TempDir()
	cluster.Execute(t, dir, python, "-m", "pip", "install", "-q", "--root-user-action=ignore", "--target", dir,
		"kazoo=="+version)
	return program{
		source: "interop/testdata/kazoo_checks.py", runtime: says(t, python, "-V"),
		command: []string{"env", "PYTHONPATH=" + dir, python, here(t, "../interop/testdata/kazoo_checks.py")},
	}
}

// goZookeeper builds integration/interop's program with a version of github.com/go-zookeeper/zk, or with the client it
// comes from, whose package has the same name.
func goZookeeper(t *testing.T, version string) program {
	t.Helper()
	t.Setenv("GOWORK", "off") // a workspace's modules would choose other versions
	t.Setenv("GOFLAGS", "-mod=mod")
	const now, before = "github.com/go-zookeeper/zk", "github.com/samuel/go-zookeeper"
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../interop/gozk")); err != nil {
		t.Fatal(err)
	}
	module := now
	if strings.HasPrefix(version, "v0.0.0-") {
		module = before
		cluster.Execute(t, dir, "sed", "-i", `s#"`+now+`"#"`+before+`/zk"#`, "kit.go", "main.go", "queue.go")
	}
	cluster.Execute(t, dir, "go", "get", module+"@"+version)
	cluster.Execute(t, dir, "go", "build", "-o", "gozk", ".")
	return program{
		source: "interop/gozk/main.go", runtime: runtime.Version(),
		command: []string{filepath.Join(dir, "gozk")},
	}
}

// c compiles integration/interop's program with Debian's library, which has no TLS, or with one that is built from
// the source in the release of Debian that has the version.
func c(t *testing.T, version string) program {
	t.Helper()
	cluster.NeedTool(t, "/usr/include/zookeeper/zookeeper.h", "gcc libc6-dev libzookeeper-mt-dev")
	dir := t.TempDir()
	library, flags := filepath.Join(dir, "libzookeeper.so"), []string{"-lzookeeper_mt"}
	p := program{source: "interop/testdata/c_checks.c", command: []string{filepath.Join(dir, "checks")}, noTLS: true}
	if release := cReleases[version]; version != debianC {
		if got := says(t, here(t, "../interop/build-c-client"), library, release); got != version {
			t.Fatalf("Debian %s has version %s of the C client, not %s", release, got, version)
		}
		p.noTLS = false
		flags = []string{"-DHAVE_OPENSSL_H", "-I", library + ".include", library}
	}
	cluster.Execute(t, dir, append([]string{"gcc", "-std=gnu11", "-DTHREADED", "-o", p.command[0],
		here(t, "../interop/testdata/c_checks.c"), "-lpthread"}, flags...)...)
	p.runtime = "gcc " + says(t, "gcc", "-dumpfullversion")
	return p
}

// debianC is the version of the library that Debian 12 installs.
const debianC = "3.8.0 of Debian 12"

// cReleases are the releases of Debian with the source of a version.
var cReleases = map[string]string{"3.8.0": "bookworm", "3.9.3": "trixie"}

// node installs the packages of package-lock.json; the one that binds the C client compiles it.
func node(library string) func(t *testing.T, version string) program {
	return func(t *testing.T, version string) program {
		t.Helper()
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("node")); err != nil {
			t.Fatal(err)
		}
		if got := says(t, "sed", "-n", `s/.*"`+library+`": "\(.*\)".*/\1/p`, here(t, "node/package.json")); got != version {
			t.Fatalf("node/package.json asks for version %q of %s, not %s", got, library, version)
		}
		cluster.Execute(t, dir, "npm", "ci", fmt.Sprintf("--ignore-scripts=%t", library != "zookeeper"))
		return program{
			source: "clients/node/checks.js", runtime: "Node.js " + says(t, "node", "-v"),
			// The C client prints where the program should: that prints to another descriptor.
			command: []string{"sh", "-c", `exec node "$@" 3>&1 1>&2`, "sh", filepath.Join(dir, "checks.js"), library},
			noTLS:   true,
		}
	}
}

// rust compiles the checks of a crate. If CARGO_TARGET_DIR is set, it keeps what they depend on, and the next run has
// only the checks to compile. The crate zookeeper has no TLS.
func rust(crate string) func(t *testing.T, version string) program {
	return func(t *testing.T, version string) program {
		t.Helper()
		cargo, err := exec.LookPath("cargo")
		if err != nil {
			cargo = cluster.NeedTool(t, "/usr/bin/cargo", "cargo")
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("rust")); err != nil {
			t.Fatal(err)
		}
		asked := says(t, "sed", "-n", `s/^`+crate+` = .*version = "=\([^"]*\)".*/\1/p`, here(t, "rust/Cargo.toml"))
		if asked != version {
			t.Fatalf("rust/Cargo.toml asks for version %q of %s, not %s", asked, crate, version)
		}
		name := strings.ReplaceAll(crate, "-", "_") + "_checks"
		cluster.Execute(t, dir, cargo, "install", "-q", "--locked", "--debug", "--no-track", "--path", ".",
			"--root", dir, "--features", crate, "--bin", name)
		return program{
			source:  "clients/rust/src/bin/" + name + ".rs",
			runtime: "Rust " + strings.Fields(says(t, "rustc", "-V"))[1],
			command: []string{filepath.Join(dir, "bin", name)},
			noTLS:   crate == "zookeeper",
		}
	}
}
