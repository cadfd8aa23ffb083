package tenants

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

const page = "../../docs/reference/tenants.md"

var update = flag.Bool("update", false, "write docs/reference/tenants.md, and results.txt after a run")

// tenant is a system that runs on the ensemble.
type tenant struct {
	name    string // of its directory, too
	product string // with its version
	client  string // the ZooKeeper client in it
	secure  bool   // speaks TLS to the ensemble
	task    string // what it does in the test
}

// done is what a tenant did and saw in a run.
type done struct {
	ran    string   // how long
	deaths int      // of leaders
	work   []string // what;times;failures;longest in ms
	saw    []string
}

// results are those of the last recorded run of each tenant.
type results map[string]done

const (
	file       = "results.txt"
	fileHeader = `# Tenant, and: ran, how long, leaders killed; work WHAT;times;failures;longest in ms; saw, words. Written by
# RECORD=1 make tenants.
`
)

// read reads lines of a tenant, a kind (ran, work or saw) and its text.
func read(t *testing.T) results {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := results{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, rest, _ := strings.Cut(rest, " ")
		d := all[name]
		switch kind {
		case "ran":
			if _, err := fmt.Sscanf(rest, "%s %d", &d.ran, &d.deaths); err != nil {
				t.Fatalf("%s: got %q, want how long it ran and how many leaders died: %v", file, line, err)
			}
		case "work":
			d.work = append(d.work, rest)
		case "saw":
			d.saw = append(d.saw, rest)
		default:
			t.Fatalf("%s: %q is not a tenant, ran, work or saw, and words", file, line)
		}
		all[name] = d
	}
	return all
}

// TestPage keeps docs/reference/tenants.md equal to what was run; -update rewrites it.
func TestPage(t *testing.T) {
	want := written(read(t))
	text, err := os.ReadFile(page)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if string(text) == want {
		return
	}
	if !*update {
		t.Fatalf("%s differs from %s; run go test ./integration/tenants -update", page, file)
	}
	writePage(t, read(t))
}

func writePage(t *testing.T, all results) {
	t.Helper()
	if err := os.WriteFile(page, []byte(written(all)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// written is the page.
func written(all results) string {
	var systems, work strings.Builder
	for _, s := range tenants {
		d, ok := all[s.name]
		if !ok {
			continue
		}
		tls := map[bool]string{true: "yes", false: "no"}[s.secure]
		fmt.Fprintf(&systems, "| %s | %s | %s | %s | %s, %d | %s |\n", s.product, s.client, tls, s.task, d.ran, d.deaths,
			strings.Join(d.saw, "; "))
		for _, w := range d.work {
			f := strings.Split(w, ";")
			fmt.Fprintf(&work, "| %s | %s |\n", s.product, strings.Join(f, " | "))
		}
	}
	return fmt.Sprintf(pageText, &systems, &work)
}

const pageText = `# Systems that run on it

<!-- Written by integration/tenants from results.txt: go test ./integration/tenants -update. -->

Systems that keep their metadata in ZooKeeper, unchanged, at work on one ensemble of three servers, all at once (Solr
alone), while its leader is killed every 20 seconds and started again: ` + "`make tenants`" + `. In the end each compares what
it has with what it was told, and the replicas are compared.

| system | ZooKeeper client in it | TLS | what it did | for how long, leaders killed | what it saw |
|---|---|---|---|---|---|
%s
## What they did, counted

Failures are requests that the system itself gave up; most systems try again by themselves, which shows in the longest.

| system | work | times | failed | longest (ms) |
|---|---|---|---|---|
%s`
