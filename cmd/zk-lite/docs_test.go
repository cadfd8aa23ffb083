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

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
	"github.com/zk-lite/zk-lite/zklitetest"
)

// documented are the blocks of the pages, by the beginnings of their first lines.
var documented = []struct {
	page, first string
	not         string // why it is not run here; empty: it is
	prepare     string // what the page takes for granted; with a secret in it, there is an administrator
	output      string // a regular expression that the output matches
}{
	{page: "README.md", first: "make dev ", not: "builds and tests all: make test is a step of .ci/run, make dev TestDev_*"},
	{page: "README.md", first: "export PATH=$PWD/bin:$PATH", output: "world.*only one of us at a time.*world"},
	{page: "README.md", first: "/usr/share/zookeeper/bin/zkCli.sh", not: "needs Java and kazoo: integration/interop"},
	{page: "README.md", first: "zk-lite server ", not: "does not end: TestServer_*"},

	{page: "docs/BENCHMARKS.md", first: "make benchmarks", not: "takes half an hour"},

	{page: "docs/cli.md", first: "$ zk-lite context add"},
	{page: "docs/cli.md", first: "$ export ZK_LITE_SERVER=127"},
	{page: "docs/cli.md", first: "$ export ZK_LITE_SERVER=zk1", not: "needs a fourth server: TestCLI_Ensemble/member"},
	{page: "docs/cli.md", first: "$ zk-lite backup zk.backup"},
	{page: "docs/cli.md", first: "$ zk-lite lock /locks/backup",
		prepare: programs, output: "backup.sh runs.*daily.sh runs.*scheduler runs.*worker runs"},
	{page: "docs/cli.md", first: "$ zk-lite locks /locks", not: "its table differs from run to run: TestLocks_WhoWaitsForWhom"},
	{page: "docs/cli.md", first: "$ zk-lite backup ls", prepare: "mkdir backups; for f in monday tuesday; do " +
		"zk-lite backup $f.backup; cp $f.backup backups; done"},
	{page: "docs/client.md", first: "go get ", not: "needs the network"},

	{page: "docs/cookbook.md", first: "zk-lite elect ", prepare: programs,
		output: `scheduler runs.*"candidates"`},
	{page: "docs/cookbook.md", first: "zk-lite lock ", prepare: programs, output: "backup.sh runs.*daily.sh runs"},
	{page: "docs/cookbook.md", first: "zk-lite create --parents /app/config", output: "20.*10"},
	{page: "docs/cookbook.md", first: "zk-lite join ", prepare: programs, output: `worker runs.*"members"`},
	{page: "docs/cookbook.md", first: "zk-lite create --parents /app/gate", output: `"deleted"`},

	{page: "docs/deployment.md", first: "dpkg --install", not: "installs: .ci/packages"},
	{page: "docs/deployment.md", first: "ssh-keygen -Y verify", not: "needs ssh-keygen: TestSign in packaging"},
	{page: "docs/deployment.md", first: "install zk-lite-", not: "needs a release: .ci/packages; TestCLI has man and completion"},
	{page: "docs/deployment.md", first: "podman load", not: "needs an image: .ci/packages"},

	{page: "docs/kubernetes.md", first: "helm install", not: "needs a cluster: packaging/helm"},
	{page: "docs/kubernetes.md", first: "helm upgrade", not: "needs a cluster: packaging/helm"},

	{page: "docs/monitoring.md", first: "zk-lite slow ", prepare: "export ZK_LITE_PASSWORD=secret",
		output: "AT +SERVER.*AT +SESSION.*KIND +NAME.*address +127.0.0.1"},
	{page: "docs/quickstart.md", first: "zk=http", output: "one\nchanged\nholding the lock\n$"},

	{page: "docs/recipes.md", first: "$ dig ", not: "needs dig: TestDocs_Questions in api/dns asks the same"},

	{page: "docs/operations.md", first: "reconfig -add", not: "needs Java: integration/interop runs it in zkCli"},
	{page: "docs/operations.md", first: "tickTime=2000", not: text},
	{page: "docs/operations.md", first: "backup.directory=", not: text},
	{page: "docs/operations.md", first: "backup.command=", not: text},
	{page: "docs/operations.md", first: "echo 1 > /var/lib/zk-lite/myid", not: "needs systemd: .ci/packages"},
	{page: "docs/operations.md", first: "export ZK_LITE_SERVER=zk1", prepare: "# secret", output: `ID  ROLE.*3 voters.*"ok"`},
	{page: "docs/operations.md", first: "zkop drain N ", prepare: zkop + "systemctl() { zkop drain 1 --undo; }",
		output: "can be stopped.*accepts clients again.*ID  ROLE"},
	{page: "docs/operations.md", first: "zkop backup zk-", prepare: zkop, output: "restored"},

	{page: "docs/security.md", first: "dataDir=/var/lib/zk-lite", not: "no command: TestDocs_FirmConfiguration"},
	{page: "docs/security.md", first: "secureClientPort=2281", not: text},
	{page: "docs/security.md", first: "zk-lite tls init", output: "zk1.pem"},
	{page: "docs/security.md", first: "Server {", not: text},
	{page: "docs/security.md", first: "admin.identities=", not: text},
	{page: "docs/security.md", first: "sslQuorum=true", not: text},
	{page: "docs/security.md", first: "2026-11-24 07:45:12,031 INFO audit:", not: text},

	{page: "docs/sizing.md", first: "zk-lite size ", not: "no command, but its flags: TestCLI/script/size"},

	{page: "examples/broker/README.md", first: "go build ", not: "TestBroker_TranscriptOfREADME runs what it shows"},
	{page: "examples/broker/README.md", first: "one: is the primary", not: text},
	{page: "examples/fetcher/README.md", first: "go build ", not: "TestFetcher_TranscriptOfREADME runs what it shows"},
	{page: "examples/fetcher/README.md", first: "a: is healthy", not: text},

	{page: "integration/README.md", first: ".ci/install", not: "the first step of .ci/run"},
	{page: "integration/README.md", first: "go test ./integration/sim ", not: "makes of it are steps of .ci/run"},
}

const (
	text     = "no command"
	programs = "for f in backup.sh daily.sh scheduler worker; do " +
		`printf '#!/bin/sh\necho "$0 runs"\n' > $f; chmod +x $f; done`
	zkop = `zkop() { zk-lite "$@" --auth digest:super:secret; }; `
)

// otherwise are pages whose blocks other tests run.
var otherwise = []string{"docs/http.md", "docs/http-coordination.md", "docs/ARCHITECTURE.md", "docs/migration.md"}

// TestDocs_Commands runs the commands of the pages against an ensemble of three, whose addresses take the place of the
// documented ones. Where a page shows what commands print, that is compared.
func TestDocs_Commands(t *testing.T) {
	tier.Seconds(t)
	used := map[int]bool{}
	for _, page := range []string{"../../README.md", "../../docs/*.md", "../../examples/*/README.md", "../../integration/README.md"} {
		files, err := filepath.Glob(page)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got no files, want some: %v", page, err)
		}
		for _, file := range files {
			name := filepath.ToSlash(strings.TrimPrefix(file, "../../"))
			if slices.Contains(otherwise, name) {
				continue
			}
			for _, block := range blocksOf(t, file, "", "sh") {
				i := slices.IndexFunc(documented, func(d struct{ page, first, not, prepare, output string }) bool {
					return d.page == name && strings.HasPrefix(block, d.first)
				})
				if i < 0 {
					t.Errorf("%s: no row in the table of blocks is for\n%s", name, block)
					continue
				}
				used[i] = true
				if d := documented[i]; d.not == "" {
					t.Run(name+"/"+d.first, func(t *testing.T) { runBlock(t, d.prepare, block, d.output) })
				}
			}
		}
	}
	for i, d := range documented {
		if !used[i] {
			t.Errorf("%s has no block that begins with %q", d.page, d.first)
		}
	}
}

// blocksOf returns a page's fenced blocks in some languages.
func blocksOf(t *testing.T, file string, languages ...string) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split("\n"+string(page), "\n```") {
		if language, body, _ := strings.Cut(part, "\n"); i%2 == 1 && slices.Contains(languages, language) {
			blocks = append(blocks, body+"\n")
		}
	}
	return blocks
}

// runBlock runs a block in a shell. One in which $ is before the commands shows their output.
func runBlock(t *testing.T, prepare, block, output string) {
	t.Parallel()
	script, shown := block, ""
	if strings.HasPrefix(block, "$ ") {
		script = ""
		for line := range strings.Lines(block) {
			if command, is := strings.CutPrefix(line, "$ "); is {
				script += command
			} else {
				shown += line
			}
		}
	}
	if shown == "" {
		script = "set -euo pipefail\n" + script
	}
	out, err := runScript(t, prepare, script)
	for bytes.Contains(out, []byte("no contact with a majority")) { // where a busy machine stood still: as the hint says
		out, err = runScript(t, prepare, script)
	}
	if err != nil && shown == "" {
		t.Errorf("the script failed: %v\n%s", err, out)
	}
	volatile := regexp.MustCompile(`0x[0-9a-f]+|[0-9]+ bytes`)
	if got := volatile.ReplaceAllString(string(out), "N"); shown != "" && got != volatile.ReplaceAllString(shown, "N") {
		t.Errorf("it prints\n%s\nthe page shows\n%s", got, shown)
	}
	if !regexp.MustCompile("(?s)" + output).Match(out) {
		t.Errorf("it prints\n%s\nwant a match of %s", out, output)
	}
}

// runScript runs commands beside three servers of their own.
func runScript(t *testing.T, prepare, script string) ([]byte, error) {
	t.Helper()
	options := []zklitetest.Option{zklitetest.WithServers(3)}
	if strings.Contains(prepare, "secret") {
		options = append(options, zklitetest.WithSetting(
			"DigestAuthenticationProvider.superDigest", "super:lK75jTNcA+U9vtVEw5vB51mj/w4="))
	}
	e := zklitetest.Start(t, options...)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", prepare+"\n"+addresses(t, e).Replace(script))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "ZK_LITE_SERVER="+e.ConnectString(), "HOSTNAME=host", "XDG_CACHE_HOME="+t.TempDir(),
		"XDG_CONFIG_HOME="+t.TempDir())
	return cmd.CombinedOutput()
}

// addresses replaces documented addresses, and what a reader puts in.
func addresses(t *testing.T, e *zklitetest.Ensemble) *strings.Replacer {
	t.Helper()
	pairs := []string{
		"PASSWORD", "secret", "drain N ", "drain 1 ", "zkN.example:8080", e.HTTPAddrs()[0],
		"/var/backups/zk-lite", "backups", "--dry-run zk-2026-11-01.backup", "--dry-run zk-$(date +%F).backup",
		"--replace zk-2026-11-01.backup", "--replace --yes zk-$(date +%F).backup",
	}
	for i := range 3 {
		pairs = append(pairs, fmt.Sprintf("127.0.0.1:%d", 2181+i), e.Addrs()[i])
		for _, name := range []string{"zk%d.example:2181", "zk%d:2181"} {
			pairs = append(pairs, fmt.Sprintf(name, i+1), e.Addrs()[i])
		}
		for _, name := range []string{"zk%d.example:8080", "zk%d:8080"} {
			pairs = append(pairs, fmt.Sprintf(name, i+1), e.HTTPAddrs()[i])
		}
	}
	pairs = append(pairs, "127.0.0.1:8080", e.HTTPAddrs()[0])
	return strings.NewReplacer(append(pairs, "other:2181", startServer(t))...)
}
