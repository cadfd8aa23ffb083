package clients

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

const page = "../../docs/reference/clients.md"

// The two ways in which a program is run.
const (
	plain   = "plain"
	secured = "TLS"
)

var update = flag.Bool("update", false, "write docs/reference/clients.md, and results.txt if clients were run")

// result is what one version of a client gave, in plain text or over TLS.
type result struct {
	client, version, runtime, transport string
	program                             string // its path in integration
	passed, failed, absent              []string
}

func (r result) key() string { return r.client + " " + r.version + " " + r.transport }

func (r result) String() string {
	return strings.Join([]string{r.client, r.version, r.runtime, r.transport, r.program, list(r.passed), list(r.failed),
		list(r.absent)}, " | ")
}

// readResults reads results.txt.
func readResults(t *testing.T) (all []result) {
	t.Helper()
	text, err := os.ReadFile("results.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimRight(line, "\n"), " | ")
		if len(f) != 8 {
			t.Fatalf("results.txt: %q has %d parts, want 8", line, len(f))
		}
		all = append(all, result{f[0], f[1], f[2], f[3], f[4], words(f[5]), words(f[6]), words(f[7])})
	}
	return all
}

// list and words convert between a list and a field, which is - for none.
func list(s []string) string { return cmp.Or(strings.Join(s, ", "), "-") }

func words(s string) []string {
	if s == "-" {
		return nil
	}
	return strings.Split(s, ", ")
}

// TestPage keeps docs/reference/clients.md equal to what was run; -update rewrites it.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := written(readResults(t))
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from results.txt; run go test ./integration/clients -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// written is the page: a row for each version, which has one result in plain text and perhaps one over TLS.
func written(all []result) string {
	var rows strings.Builder
	for i, r := range all {
		if r.transport != plain {
			continue
		}
		secure, absent, failed := "", r.absent, r.failed
		if i+1 < len(all) && all[i+1].key() == r.client+" "+r.version+" "+secured {
			secure = count(all[i+1])
			for _, f := range all[i+1].failed {
				failed = append(failed, "over TLS: "+f)
			}
		} else {
			absent = append(absent, "TLS")
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | [%s](../../integration/%s) | %s | %s | %s | %s |\n", r.client, r.version,
			r.runtime, r.program[strings.LastIndex(r.program, "/")+1:], r.program, count(r), secure, text(absent), text(failed))
	}
	return fmt.Sprintf(pageText, &rows)
}

// text is a list of checks; kazoo's have the names of functions.
func text(names []string) string { return strings.ReplaceAll(strings.Join(names, ", "), "_", " ") }

func count(r result) string {
	return fmt.Sprintf("%d of %d", len(r.passed), len(r.passed)+len(r.failed))
}

const pageText = `# Clients that were run

<!-- Written by integration/clients from results.txt: go test ./integration/clients -update. -->

` + "`make clients`" + ` runs versions of other people's clients against three zk-lite servers, one of which is killed under a
session, and ` + "`make clients RECORD=1`" + ` writes this page. The program with the checks is compiled or installed with each
version; "plain" and "TLS" say how many of them passed in plain text, and over TLS with a certificate on both sides.
What a client lacks is not counted. A check that fails is run against ZooKeeper 3.9.5, too: ` + "`make clients`" + ` fails if it
passes there. [More of each client](../../integration/README.md#the-clients-of-interop).

| client | version | runs on | checks | plain | TLS | lacks | fails |
|---|---|---|---|---|---|---|---|
%s
Not run: Debian's python3-zookeeper, which its Python cannot load (an undefined symbol), and .NET's ZooKeeperNetEx and
Perl's Net::ZooKeeper, which neither Debian nor the registries that ` + "`make clients`" + ` needs have.
`
