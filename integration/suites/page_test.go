package suites

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const page = "../../docs/reference/suites.md"

var (
	update  = flag.Bool("update", false, "write docs/reference/suites.md, and results.txt if there are runs")
	runs    = flag.String("suites.runs", "", "directory of what ./run has just run")
	ran     = flag.String("suites.classes", "", "file of the classes that it has run")
	columns = flag.String("suites.systems", "", "the systems that it has run")
)

// TestRun judges what ./run has just run: zk-lite must pass what ZooKeeper passes there, or passed when that was
// recorded, but for what is explained. With -update the results become those of the page. Without a run it judges the
// results that are kept.
func TestRun(t *testing.T) {
	all, why := readResults(t, "results.txt"), readExplanations(t)
	judged := map[string]bool{} // classes
	for k, o := range all {
		judged[k.class] = judged[k.class] || *runs == "" && o[1] != "-"
	}
	if *runs != "" {
		for _, f := range fields(t, *ran, 1) {
			for _, system := range strings.Fields(*columns) {
				judged[f[0]] = judged[f[0]] || system == "zk-lite"
				all.merge(t, *runs, system, f[0])
			}
		}
	}
	passed, applies := 0, 0
	for _, k := range all.sorted() {
		o := all[k]
		if o[0] != "passed" || !judged[k.class] || !why.applies(k, o) {
			continue
		}
		applies++
		if o[1] == "passed" {
			passed++
		} else if why.of(k).text == "" {
			t.Errorf("%s %s: passed on ZooKeeper, %s on zk-lite, and explanations.txt has no reason", k.class, k.name, o[1])
		}
	}
	t.Logf("zk-lite passes %d of the %d tests that ZooKeeper passes and that apply", passed, applies)
	if applies == 0 && strings.Contains(*columns, "zk-lite") {
		t.Error("no test was judged")
	}
	if *update && *runs != "" {
		all.write(t, "results.txt")
	}
}

// TestPage keeps docs/reference/suites.md equal to what was run; -update rewrites it.
func TestPage(t *testing.T) {
	all, why := readResults(t, "results.txt"), readExplanations(t)
	text, err := os.ReadFile(page)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := written(t, all, why)
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from results.txt and explanations.txt; run go test ./integration/suites -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestMerge: a class's last run replaces the one before; what did not end has failed; without a server nothing counts.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	put := func(class, starts, tests string) {
		work := filepath.Join(dir, "zk-lite", class)
		if err := os.MkdirAll(work, 0o755); err != nil {
			t.Fatal(err)
		}
		if starts != "" {
			tests = "a started\na successful\nb started\nc started\nc failed\nd started\nd aborted\n"
			_ = os.WriteFile(filepath.Join(work, "starts"), []byte(starts), 0o644)
		}
		_ = os.WriteFile(filepath.Join(work, "tests"), []byte(tests), 0o644)
	}
	put("x.Served", "one\n", "")
	put("x.Alone", "", "a started\na successful\n")
	got := results{{"x.Served", "a"}: {"passed", "failed"}, {"x.Served", "gone"}: {"-", "passed"}}
	got.merge(t, dir, "zk-lite", "x.Served")
	got.merge(t, dir, "zk-lite", "x.Alone")
	want := results{
		{"x.Served", "a"}: {"passed", "passed"}, {"x.Served", "b"}: {"-", "failed"}, {"x.Served", "c"}: {"-", "failed"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("merged results:\ngot  %v\nwant %v", got, want)
	}
}

// counts are passed, failed and not applicable.
type counts [3]int

func (c *counts) add(outcome string, applies bool) {
	switch {
	case outcome == "-":
	case !applies:
		c[2]++
	case outcome == "passed":
		c[0]++
	default:
		c[1]++
	}
}

func (c counts) String() string { return fmt.Sprintf("%d | %d | %d", c[0], c[1], c[2]) }

// written is the page.
func written(t *testing.T, all results, why explanations) string {
	t.Helper()
	names := map[string]string{"apache": "Apache ZooKeeper 3.9.5", "curator": "Curator 5.9.0"}
	var rows, summary, missing strings.Builder
	listed := fields(t, "classes.txt", 3)
	for _, suite := range []string{"apache", "curator"} {
		both, of := 0, 0
		for _, f := range listed {
			if f[0] != suite {
				continue
			}
			var sum [2]counts
			var lost []test
			good := 0
			for _, k := range all.sorted() {
				if k.class != f[1] {
					continue
				}
				applies := why.applies(k, all[k])
				for i, o := range all[k] {
					sum[i].add(o, applies)
				}
				if !applies || all[k][0] != "passed" {
					continue
				}
				if all[k][1] == "passed" {
					good++
				} else {
					lost = append(lost, k)
				}
			}
			if sum[0] == (counts{}) || sum[1] == (counts{}) {
				fmt.Fprintf(&rows, "| %s | %s | not run | | | not run | | |\n", suite, short(f[1]))
				continue
			}
			both, of = both+good, of+good+len(lost)
			for _, k := range lost {
				fmt.Fprintf(&missing, "| %s | `%s` | %s |\n", short(f[1]), k.name, why.of(k).text)
			}
			fmt.Fprintf(&rows, "| %s | %s | %v | %v |\n", suite, short(f[1]), sum[0], sum[1])
		}
		fmt.Fprintf(&summary, "| %s | %d | %d | %.1f %% |\n", names[suite], of, both, 100*float64(both)/float64(max(of, 1)))
	}
	return fmt.Sprintf(pageText, &summary, &missing, reasons(all, why), &rows)
}

// reasons is the table of what is not applicable.
func reasons(all results, why explanations) string {
	n := map[test]int{}
	for k, o := range all {
		if why.applies(k, o) {
			continue
		}
		k.class = short(k.class)
		if _, named := why[k]; !named {
			k.name = "*"
		}
		n[k]++
	}
	var b strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(n), byName) {
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", k.class, strings.ReplaceAll(k.name, "*", "those that ZooKeeper fails, too"), n[k], why[k].text)
	}
	return b.String()
}

const pageText = `# The tests of ZooKeeper and Curator

<!-- Written by integration/suites from results.txt and explanations.txt: go test ./integration/suites -update. -->

Apache's and Curator's own test classes, compiled by them, run against zk-lite and, as the control, against ZooKeeper
3.9.5 in the same harness: ` + "`make suites`" + ` ([how](../../integration/suites/README.md)). Both are processes, never inside
the tests' JVM. A class that starts no server says nothing about one and is not here; of Curator's, the artifacts of
framework and recipes have tests, those of discovery and async have none.

| suite | tests that ZooKeeper passes and that apply | zk-lite passes of these | |
|---|---|---|---|
%s
## What ZooKeeper passes and zk-lite does not

| class | test | why |
|---|---|---|
%s
## What is not applicable

| class | test | tests | why |
|---|---|---|---|
%s
## Class by class

A test that did not run on a system, as its class was ended before, is in none of its columns. What fails on ZooKeeper
and is not in the list above was not looked into. Sets of parameters are counted one by one.

| suite | class | ZooKeeper: passed | failed | not applicable | zk-lite: passed | failed | not applicable |
|---|---|---|---|---|---|---|---|
%s`
