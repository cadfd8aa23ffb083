package zklite_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// pages lists all pages of Markdown, with the number of words that each may have. A new page needs
// a row. A row that ends in / is for all pages of a folder that have no row of their own; 0 is no
// limit, for notebooks and results.
var pages = []struct {
	page string
	most int
}{
	{"README.md", 750},
	{"CHANGELOG.md", 5700},
	{"CONTRIBUTING.md", 1080},
	{"SECURITY.md", 680},
	{"api/README.md", 145},
	{"api/ui/web/vendor/README.md", 60},
	{"bench/README.md", 206},
	{"bench/notes/", 0},
	{"bench/results/", 0},
	{"client/README.md", 165},
	{"consensus/RAFT.md", 2500},
	{"consensus/raftlog/FORMAT.md", 1600},
	{"docs/ARCHITECTURE.md", 2000},
	{"docs/BENCHMARKS.md", 1460},
	{"docs/README.md", 230},
	{"docs/adr/", 350},
	{"docs/adr/README.md", 0},
	{"docs/cli.md", 1970},
	{"docs/client.md", 1900},
	{"docs/compatibility.md", 280},
	{"docs/configuration.md", 900},
	{"docs/cookbook.md", 1600},
	{"docs/dashboard.md", 1160},
	{"docs/deployment.md", 600},
	{"docs/kubernetes.md", 1200},
	{"docs/formats.md", 700},
	{"docs/guarantees.md", 2440},
	{"docs/http-coordination.md", 1290},
	{"docs/http.md", 3000},
	{"docs/lab-lesson.md", 10},
	{"docs/lab-slides.md", 10},
	{"docs/lab-stories.md", 10},
	{"docs/metrics.md", 10},
	{"docs/limits.md", 1339},
	{"docs/migration.md", 2050},
	{"docs/monitoring.md", 1750},
	{"docs/operations.md", 2450},
	{"docs/performance.md", 1320},
	{"docs/protocol.md", 1910},
	{"docs/quickstart.md", 1000},
	{"docs/recipes.md", 1800},
	{"docs/reference/beyond.md", 700},
	{"docs/reference/clients.md", 0},
	{"docs/reference/commands.md", 760},
	{"docs/reference/metrics.md", 2640},
	{"docs/reference/packages.md", 2260},
	{"docs/scale.md", 928},
	{"docs/reference/settings.md", 5300},
	{"docs/reference/suites.md", 0},
	{"docs/reference/tenants.md", 0},
	{"docs/security.md", 4110},
	{"docs/sizing.md", 890},
	{"docs/troubleshooting.md", 5950},
	{"docs/when-not.md", 850},
	{"examples/README.md", 165},
	{"examples/broker/README.md", 300},
	{"examples/fetcher/README.md", 300},
	{"integration/README.md", 3100},
	{"integration/suites/README.md", 400},
	{"integration/track-record.md", 0},
	{"lab/README.md", 1500},
	{"lab/judge/protocol.md", 750},
	{"lab/lesson.md", 3000},
	{"lab/story/slides.md", 900},
	{"lab/stories.md", 3300},
	{"lab/testdata/", 0},
}

const widest = 120 // columns of a line of text

// unwrapped pages have longer lines.
var unwrapped = []string{
	"bench/results/", "bench/notes/performance.md", "bench/notes/method.md", "consensus/raftlog/FORMAT.md",
	"lab/",
}

// TestDocs_Length: no one reads a page that grows without bound.
func TestDocs_Length(t *testing.T) {
	used := map[string]bool{}
	for _, page := range markdown(t) {
		row := -1
		for i, p := range pages {
			if p.page == page || strings.HasSuffix(p.page, "/") && strings.HasPrefix(page, p.page) &&
				(row < 0 || len(p.page) > len(pages[row].page)) {
				row = i
			}
		}
		if row < 0 {
			t.Errorf("%s has no row in the table of pages: add one, with the number of words that it may have", page)
			continue
		}
		used[pages[row].page] = true
		if n := len(strings.Fields(read(t, page))); pages[row].most > 0 && n > pages[row].most {
			t.Errorf("%s has %d words; it may have %d", page, n, pages[row].most)
		}
	}
	for _, p := range pages {
		if !used[p.page] {
			t.Errorf("the table of pages lists %s, which does not exist", p.page)
		}
	}
}

// TestDocs_Width: no one can review a change in a long line. Tables, code and links cannot be wrapped.
func TestDocs_Width(t *testing.T) {
	for _, page := range markdown(t) {
		if slices.ContainsFunc(unwrapped, func(p string) bool { return strings.HasPrefix(page, p) }) {
			continue
		}
		code := false
		for i, line := range strings.Split(read(t, page), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if code || strings.HasPrefix(strings.TrimSpace(line), "|") || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "    ") {
				continue
			}
			if n := utf8.RuneCountInString(line); n > widest && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s:%d has %d columns; wrap it at %d", page, i+1, n, widest)
			}
		}
	}
}

// TestDocs_NamedTestsExist: a promise that names a test which does not exist is not tested.
func TestDocs_NamedTestsExist(t *testing.T) {
	exists := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)`)
	for _, file := range files(t, "_test.go") {
		for _, m := range declared.FindAllStringSubmatch(read(t, file), -1) {
			exists[m[1]] = true
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]+)`")
	for _, page := range markdown(t) {
		for _, m := range named.FindAllStringSubmatch(read(t, page), -1) {
			if !exists[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
}

// TestDocs_NamedFilesExist: a page that names a file of Go which does not exist sends its reader away for nothing.
// RAFT.md names files of hashicorp/raft; notes and records of decisions are about the code of their day.
func TestDocs_NamedFilesExist(t *testing.T) {
	all := files(t, ".go")
	named := regexp.MustCompile("`([A-Za-z0-9_./-]+\\.go)`")
	past := []string{"CHANGELOG.md", "bench/notes/", "bench/results/", "consensus/RAFT.md", "docs/adr/"}
	for _, page := range markdown(t) {
		if slices.ContainsFunc(past, func(p string) bool { return strings.HasPrefix(page, p) }) {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(read(t, page), -1) {
			if !slices.ContainsFunc(all, func(file string) bool { return file == m[1] || strings.HasSuffix(file, "/"+m[1]) }) {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
}

// TestDocs_Links: a link leads to a file, and to a heading that is in it.
func TestDocs_Links(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range markdown(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue
			}
			file := page
			if to != "" {
				file = path.Join(path.Dir(page), to)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if anchor != "" && !anchors(read(t, file))[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", page, m[1], file)
			}
		}
	}
}

// TestDocs_DiagramsAreDrawn: the pictures are those of their sources; make diagrams draws them again.
func TestDocs_DiagramsAreDrawn(t *testing.T) {
	for _, source := range files(t, ".dot") {
		want := fmt.Sprintf("<!-- drawn from sha256 %x -->", sha256.Sum256([]byte(read(t, source))))
		if picture := strings.TrimSuffix(source, ".dot") + ".svg"; !strings.Contains(read(t, picture), want) {
			t.Errorf("%s is not drawn from %s as it is: make diagrams", picture, source)
		}
	}
}

// TestDocs_FiguresAreMeasured: each figure of README is in the results of the run that it links to.
func TestDocs_FiguresAreMeasured(t *testing.T) {
	figure := regexp.MustCompile(`\b[0-9][0-9.,]*(?: MiB| ms)`)
	run := regexp.MustCompile(`\[run\]\((bench/results/[^)]+)\)`)
	added := regexp.MustCompile(`takes [0-9]+ ms longer`) // what the run was made with
	for _, line := range strings.Split(strings.ReplaceAll(read(t, "README.md"), "\n  ", " "), "\n") {
		figures := figure.FindAllString(added.ReplaceAllString(line, ""), -1)
		if len(figures) == 0 {
			continue
		}
		link := run.FindStringSubmatch(line)
		if link == nil {
			t.Errorf("README.md has the figures %v, and no link to the run that measured them: %s", figures, line)
			continue
		}
		results := read(t, link[1])
		for _, f := range figures {
			if !strings.Contains(results, f) {
				t.Errorf("README.md has %s; %s does not", f, link[1])
			}
		}
	}
}

// TestDocs_WaysToGetIt: README has the ways of packaging/ways.json that are published, in their order, and no other:
// everything that it prints works.
func TestDocs_WaysToGetIt(t *testing.T) {
	var ways []struct {
		Way, Command string
		Published    bool
	}
	if err := json.Unmarshal([]byte(read(t, "packaging/ways.json")), &ways); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, w := range ways {
		if w.Published {
			want = append(want, "| "+w.Way+" | `"+w.Command+"`")
		}
	}
	_, table, _ := strings.Cut(read(t, "README.md"), "| from | run | |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var have []string
	for line := range strings.SplitSeq(table, "\n") {
		way, rest, _ := strings.Cut(line, " | ")
		command, _, _ := strings.Cut(rest, " | ")
		have = append(have, way+" | "+command)
	}
	if !slices.Equal(have, want) {
		t.Errorf("README.md has the ways\n%s\nwant, of packaging/ways.json:\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// TestDocs_RecipesHaveExamples: each recipe of docs/recipes.md has an example, which `go test` runs.
func TestDocs_RecipesHaveExamples(t *testing.T) {
	examples := ""
	for _, file := range files(t, "_test.go") {
		if path.Dir(file) == "recipes" {
			examples += read(t, file)
		}
	}
	_, table, _ := strings.Cut(read(t, "docs/recipes.md"), "| recipe | promise |")
	table, _, _ = strings.Cut(table, "\n\n")
	recipes := regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` ").FindAllStringSubmatch(table, -1)
	if len(recipes) == 0 {
		t.Error("docs/recipes.md has no table of recipes, want one")
	}
	for _, m := range recipes {
		if !strings.Contains(examples, "\nfunc Example"+m[1]+"()") {
			t.Errorf("the recipe %s has no example, want Example%s in package recipes", m[1], m[1])
		}
	}
}

// TestDocs_CostOfTheTestKit: what package zklitetest adds to a program's modules is what docs/client.md says.
func TestDocs_CostOfTheTestKit(t *testing.T) {
	modules := func(packages ...string) map[string]bool {
		args := append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)
		out, err := exec.Command("go", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, path := range strings.Fields(string(out)) {
			all[path] = true
		}
		return all
	}
	more := len(modules("./client", "./recipes", "./zklitetest")) - len(modules("./client", "./recipes"))
	page := strings.Join(strings.Fields(read(t, "docs/client.md")), " ")
	if want := fmt.Sprintf("Only importing it costs your `go.mod` %d more indirect modules", more); !strings.Contains(page, want) {
		t.Errorf("docs/client.md lacks %q", want)
	}
}

// TestDocs_DecisionsAreListed: the index has the number and the title of each record of a decision.
func TestDocs_DecisionsAreListed(t *testing.T) {
	const index = "docs/adr/README.md"
	listed := read(t, index)
	for _, page := range markdown(t) {
		if path.Dir(page) != path.Dir(index) || page == index || strings.HasPrefix(path.Base(page), "0000") {
			continue
		}
		heading, _, _ := strings.Cut(read(t, page), "\n")
		number, title, _ := strings.Cut(strings.TrimPrefix(heading, "# "), ": ")
		if want := "| [" + number + "](" + path.Base(page) + ") | " + title; !strings.Contains(listed, want) {
			t.Errorf("%s lacks the line %q", index, want)
		}
	}
}

// anchors are the names of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		heading := strings.TrimLeft(line, "#")
		if heading == line {
			continue
		}
		names[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading))] = true
	}
	return names
}

func markdown(t *testing.T) []string { return files(t, ".md") }

// files are the paths of all files below the repository's root that end in suffix.
func files(t *testing.T, suffix string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "zk-lite-")):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, suffix):
			found = append(found, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
