package suites

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// systems are the columns of results.txt.
var systems = []string{"zookeeper", "zk-lite"}

// test is a test method of a class, or one of its sets of parameters.
type test struct{ class, name string }

// outcomes are passed, failed, or - for a test that did not run, in the order of systems.
type outcomes [2]string

type results map[test]outcomes

// readResults reads lines of a class, a test and its outcomes.
func readResults(t *testing.T, file string) results {
	t.Helper()
	all := results{}
	for i, f := range fields(t, file, 4) {
		if len(f) != 4 {
			t.Fatalf("%s: line %d of results has %d fields, want 4", file, i+1, len(f))
		}
		all[test{f[0], f[1]}] = outcomes{f[2], f[3]}
	}
	return all
}

// fields splits lines at spaces into at most n parts; comments and empty lines are left out.
func fields(t *testing.T, file string, n int) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, strings.SplitN(line, " ", n))
		}
	}
	return all
}

// merge takes over what a class did in its last run on a system, which is all that is kept of it. A class that
// started no server says nothing about one and is left out.
func (r results) merge(t *testing.T, dir, system, class string) {
	t.Helper()
	column := slices.Index(systems, system)
	for k, o := range r {
		if k.class == class {
			o[column] = "-"
			r[k] = o
		}
	}
	if _, err := os.Stat(filepath.Join(dir, system, class, "starts")); err == nil {
		for _, f := range fields(t, filepath.Join(dir, system, class, "tests"), 2) {
			o, ok := r[test{class, f[0]}]
			if !ok {
				o = outcomes{"-", "-"}
			}
			switch {
			case len(f) != 2: // the class was ended in the middle of the line
			case f[1] == "started", f[1] == "failed": // what does not end has failed
				o[column] = "failed"
			case f[1] == "successful" && f[0] != "(class)":
				o[column] = "passed"
			case f[1] == "aborted": // by an assumption of the test
				o[column] = "-"
			}
			r[test{class, f[0]}] = o
		}
	}
	maps.DeleteFunc(r, func(_ test, o outcomes) bool { return o == outcomes{"-", "-"} })
}

func (r results) write(t *testing.T, file string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Class, test, how it ended on ZooKeeper, and on zk-lite. Written by RECORD=1 ./run.\n")
	for _, k := range r.sorted() {
		fmt.Fprintf(&b, "%s %s %s %s\n", k.class, k.name, r[k][0], r[k][1])
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r results) sorted() []test { return slices.SortedFunc(maps.Keys(r), byName) }

func byName(a, b test) int { return strings.Compare(a.class+" "+a.name, b.class+" "+b.name) }

// explanation says why a test says nothing about zk-lite (inapplicable), or why it fails there (differs).
type explanation struct{ kind, text string }

type explanations map[test]explanation

// readExplanations reads lines of a kind, a class, a test or *, and words.
func readExplanations(t *testing.T) explanations {
	t.Helper()
	all := explanations{}
	for _, f := range fields(t, "explanations.txt", 4) {
		if len(f) != 4 || f[0] != "inapplicable" && f[0] != "differs" {
			t.Fatalf("explanations.txt: %q is not inapplicable or differs, a class, a test or *, and the reason", f)
		}
		all[test{f[1], f[2]}] = explanation{f[0], f[3]}
	}
	return all
}

// of is the explanation of a test: its own, or that of its class.
func (e explanations) of(k test) explanation {
	k.class = short(k.class)
	if x, ok := e[k]; ok {
		return x
	}
	return e[test{k.class, "*"}]
}

// applies reports whether a test says something about zk-lite. Where a whole class does not apply, those of its tests
// that the control passes do.
func (e explanations) applies(k test, o outcomes) bool {
	k.class = short(k.class)
	if x, ok := e[k]; ok {
		return x.kind != "inapplicable"
	}
	return o[0] == "passed" || e[test{k.class, "*"}].kind != "inapplicable"
}

func short(class string) string { return class[strings.LastIndex(class, ".")+1:] }
