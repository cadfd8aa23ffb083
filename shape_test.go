package zklite_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ceilings bound what a reader meets. A commit that makes a figure smaller lowers its ceiling. Shape, the first
// part, never rises. Size is a budget, with a little room: it rises only for a feature, in a commit of its own that
// gives the reason.
var ceilings = map[string]int{
	"function-typed fields in Configs of consensus":          12,
	"methods of api/admin.commands":                          23,
	"methods of api/rest.Request":                            28,
	"methods of consensus.Node":                              29,
	"methods of consensus/raftlog.Store":                     30,
	"methods of server.Server":                               35,
	"methods of the widest interface":                        8,
	"one-line delegations of consensus, server, api and app": 28,
	"walk: PUT before the log":                               17,
	"walk: a TLS client":                                     12,
	"walk: a member is added":                                24,
	"walk: a session's expiry":                               15,
	"walk: create through a follower":                        70,
	"walk: getData with a watch":                             24,
	"afternoon: files":                                       32,
	"afternoon: lines":                                       8070,
	"server: files":                                          363,
	"server: files over 400 lines":                           0,
	"server: files shorter than 120 lines, percent":          29,
	"server: lines":                                          67300,
	"server: packages":                                       63,
	"migration: files":                                       49,
	"migration: lines":                                       7230,
	"migration: packages":                                    7,
	"client and recipes: files":                              53,
	"client and recipes: lines":                              11080,
	"client and recipes: packages":                           4,
	"command line: files":                                    77,
	"command line: lines":                                    15750,
	"command line: packages":                                 12,
	"lab: files":                                             125,
	"lab: lines":                                             16400,
	"lab: packages":                                          19,
	"bench: files":                                           78,
	"bench: lines":                                           12800,
	"bench: packages":                                        12,
	"examples: files":                                        23,
	"examples: lines":                                        3500,
	"examples: packages":                                     6,
	"integration: files":                                     47,
	"integration: lines":                                     6020,
	"integration: packages":                                  19,
	"tests' kits: files":                                     21,
	"tests' kits: lines":                                     2650,
	"tests' kits: packages":                                  15,
	"docs: words":                                            45900,
	"docs: words of reference":                               18500,
	"settings":                                               191,
}

// areas of the repository, by the first prefix that matches a file; a file without one is the
// server's.
var areas = []struct{ name, below string }{
	{"migration", "migration"}, {"lab", "lab"}, {"bench", "bench"}, {"examples", "examples"}, {"integration", "integration"},
	{"client and recipes", "client"}, {"client and recipes", "recipes"}, {"client and recipes", "zklitetest"},
	{"command line", "cmd"}, {"command line", "internal/site"}, {"command line", "docs"}, {"tests' kits", "internal/testkit"}, {"tests' kits", "internal/structure"},
}

// largest are the types whose methods are counted.
var largest = []string{
	"consensus.Node", "server.Server", "api/rest.Request", "api/admin.commands", "consensus/raftlog.Store",
}

// longFile is how many lines a file may have before it counts as long.
const longFile = 400

// TestShape holds the size and the shape of the code below the ceilings. With -v it prints all figures.
func TestShape(t *testing.T) {
	figures := shape(t)
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		most, known := ceilings[name]
		switch have := figures[name]; {
		case !known:
			t.Errorf("%q is %d, and has no ceiling", name, have)
		case have > most:
			t.Errorf("%q is %d, more than %d", name, have, most)
		default:
			t.Logf("%-45s %6d of %d", name, have, most)
		}
	}
	for name := range ceilings {
		if _, ok := figures[name]; !ok {
			t.Errorf("%q has a ceiling, and is not counted", name)
		}
	}
}

// shape counts the figures.
func shape(t *testing.T) map[string]int {
	long := fmt.Sprintf("server: files over %d lines", longFile)
	n := map[string]int{long: 0} // counted even if there is none
	packages := map[string]bool{}
	var lengths []int // of the server's files
	for _, name := range goFiles(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines, dir, area := bytes.Count(text, []byte("\n")), path.Dir(name), areaOf(name)
		n[area+": lines"] += lines
		n[area+": files"]++
		if !packages[dir] {
			packages[dir] = true
			n[area+": packages"]++
		}
		if area != "server" {
			continue
		}
		lengths = append(lengths, lines)
		if lines > longFile {
			n[long]++
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		countDecls(n, dir, file)
	}
	slices.Sort(lengths)
	// Joining files makes the median longer, so its opposite has the ceiling.
	n["server: files shorter than 120 lines, percent"] = percentBelow(lengths, 120)
	countWords(t, n)
	countWalks(t, n)
	settings, err := os.ReadFile("docs/reference/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	n["settings"] = bytes.Count(settings, []byte("\n| `"))
	return n
}

// countWalks counts the files of the walks in docs/ARCHITECTURE.md, which must exist, and what is read in an afternoon.
func countWalks(t *testing.T, n map[string]int) {
	t.Helper()
	item := regexp.MustCompile(`(?ms)^- \*\*(.*?)\*\*:(.*?)(?:^- |\z)`)
	text := section(t, architecture, "## Walks, file by file")
	for at := item.FindStringSubmatchIndex(text); at != nil; at = item.FindStringSubmatchIndex(text) {
		name, list := text[at[2]:at[3]], text[at[4]:at[5]]
		text = text[at[5]:]
		n["walk: "+name] = len(namedFiles(list))
		for _, file := range namedFiles(list) {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the walk %q names %s: %v", architecture, name, file, err)
			}
		}
	}
	for _, file := range namedFiles(section(t, architecture, "## An afternoon's reading")) {
		n["afternoon: files"]++
		n["afternoon: lines"] += strings.Count(read(t, file), "\n")
	}
}

// namedFiles are the files that a text names in backquotes, several of a folder as `folder/{a,b}.go`.
func namedFiles(text string) (names []string) {
	for _, m := range regexp.MustCompile("`([^`{]*)(?:\\{([^}]*)\\})?([^`]*\\.go)`").FindAllStringSubmatch(text, -1) {
		for _, part := range strings.Split(m[2], ",") {
			names = append(names, m[1]+part+m[3])
		}
	}
	return names
}

// countDecls counts what a file of the server's declares.
func countDecls(n map[string]int, dir string, file *ast.File) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if f.Recv != nil {
			if name := dir + "." + receiver(f); slices.Contains(largest, name) {
				n["methods of "+name]++
			}
		}
		if delegates(f) && slices.ContainsFunc([]string{"consensus", "server", "api", "app"}, func(top string) bool {
			return dir == top || strings.HasPrefix(dir, top+"/")
		}) {
			n["one-line delegations of consensus, server, api and app"]++
		}
	}
	ast.Inspect(file, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.InterfaceType:
			methods := 0
			for _, m := range x.Methods.List {
				methods += len(m.Names)
			}
			n["methods of the widest interface"] = max(n["methods of the widest interface"], methods)
		case *ast.TypeSpec:
			s, ok := x.Type.(*ast.StructType)
			if !ok || !strings.HasSuffix(x.Name.Name, "Config") || !strings.HasPrefix(dir+"/", "consensus/") {
				break
			}
			for _, field := range s.Fields.List {
				if _, is := field.Type.(*ast.FuncType); is {
					n["function-typed fields in Configs of consensus"] += len(field.Names)
				}
			}
		}
		return true
	})
}

// receiver is the name of the type that f is a method of.
func receiver(f *ast.FuncDecl) string {
	x := f.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	switch index := x.(type) {
	case *ast.IndexExpr:
		x = index.X
	case *ast.IndexListExpr:
		x = index.X
	}
	id, _ := x.(*ast.Ident)
	return id.Name
}

// atomics are the methods of an atomic value: to read or set one's own is no delegation.
var atomics = []string{"Load", "Store"}

// delegates reports whether f only calls another function with its own parameters.
func delegates(f *ast.FuncDecl) bool {
	if f.Recv == nil || f.Body == nil || len(f.Body.List) != 1 {
		return false
	}
	var x ast.Expr
	switch s := f.Body.List[0].(type) {
	case *ast.ReturnStmt:
		if len(s.Results) == 1 {
			x = s.Results[0]
		}
	case *ast.ExprStmt:
		x = s.X
	}
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	var parameters, arguments []string
	for _, p := range f.Type.Params.List {
		for _, name := range p.Names {
			parameters = append(parameters, name.Name)
		}
	}
	for _, a := range call.Args {
		id, ok := a.(*ast.Ident)
		if !ok {
			return false
		}
		arguments = append(arguments, id.Name)
	}
	callee, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Equal(parameters, arguments) || slices.Contains(atomics, callee.Sel.Name) {
		return false
	}
	_, field := callee.X.(*ast.SelectorExpr)
	return field
}

// goFiles are all files of Go in the root module but for tests.
func goFiles(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			base := path.Base(name)
			_, module := os.Stat(filepath.Join(name, "go.mod"))
			if name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "vendor" || base == "bin" || module == nil) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func areaOf(name string) string {
	for _, a := range areas {
		if strings.HasPrefix(name, a.below+"/") {
			return a.name
		}
	}
	return "server"
}

// percentBelow is how many of the sorted lengths are below a limit, in percent, rounded up.
func percentBelow(lengths []int, limit int) int {
	i, _ := slices.BinarySearch(lengths, limit)
	return (100*i + len(lengths) - 1) / cmp.Or(len(lengths), 1)
}

// countWords counts the words in docs/ without records of decisions: of pages to read, and of tables to look things up.
func countWords(t *testing.T, n map[string]int) {
	t.Helper()
	for figure, pattern := range map[string]string{"docs: words": "docs/*.md", "docs: words of reference": "docs/reference/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			n[figure] += len(strings.Fields(read(t, page)))
		}
	}
}
