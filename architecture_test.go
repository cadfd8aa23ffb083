package zklite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The pages whose lists and tables tests compare with the code.
const (
	architecture = "docs/ARCHITECTURE.md"
	packages     = "docs/reference/packages.md"
)

// unlisted packages are not in the table of packages: they are neither part of a running server nor a
// library.
var unlisted = []string{"bench/", "cmd/zk-lite/", "examples/", "integration/", "internal/structure", "internal/testkit/", "lab/"}

// TestArchitecture_Packages: the table of packages has each package of the product, with the layer that
// layers_test.go holds it to.
func TestArchitecture_Packages(t *testing.T) {
	shown := map[string]int{}
	row := regexp.MustCompile(`(?m)^\| ([0-9]+) \| (.*?) \|`)
	name := regexp.MustCompile("`([^`]+)`")
	for _, m := range row.FindAllStringSubmatch(section(t, packages, "## Packages"), -1) {
		for _, n := range name.FindAllStringSubmatch(m[2], -1) {
			shown[n[1]], _ = strconv.Atoi(m[1])
		}
	}
	for _, l := range layers {
		pkg := strings.TrimSuffix(l.pkg, "/...")
		if strings.Contains(pkg, "/internal/") ||
			slices.ContainsFunc(unlisted, func(p string) bool { return strings.HasPrefix(pkg+"/", p) && pkg+"/" != "cmd/zk-lite/" }) {
			continue
		}
		layer, ok := shown[pkg]
		switch {
		case !ok:
			t.Errorf("%s: the table of packages has no row for %s", packages, pkg)
		case layer != l.layer:
			t.Errorf("%s: %s has layer %d; layers_test.go has %d", packages, pkg, layer, l.layer)
		}
		delete(shown, pkg)
	}
	for pkg := range shown {
		t.Errorf("%s: the table of packages has %s, which layers_test.go does not", packages, pkg)
	}
}

// TestArchitecture_Goroutines: the functions in the table of goroutines exist, and every go statement of a
// server, and every call of a method Go or run that takes a function, starts one of them.
func TestArchitecture_Goroutines(t *testing.T) {
	found := map[string]bool{} // package and function: whether it exists
	names := map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([a-z/0-9]+)` `([A-Za-z]+)` \\|")
	for _, m := range row.FindAllStringSubmatch(section(t, packages, "## Goroutines"), -1) {
		found[m[1]+"."+m[2]], names[m[2]] = false, true
	}
	if len(found) < 10 {
		t.Fatalf("only %d functions found: is it still the format that is read here?", len(found))
	}
	for _, file := range files(t, ".go") {
		top, _, _ := strings.Cut(file, "/")
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "internal/testkit/") ||
			!slices.Contains([]string{"znode", "session", "watch", "consensus", "server", "api", "app", "internal", "migration"}, top) {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if _, shown := found[path.Dir(file)+"."+f.Name.Name]; shown {
				found[path.Dir(file)+"."+f.Name.Name] = true
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if x, ok := n.(*ast.IfStmt); ok && slices.Contains(calls(x.Cond), "On") {
					return false // a deliberate fault, which no normal build has
				}
				of, ok := started(n, f.Name.Name)
				if ok && !slices.ContainsFunc(of, func(name string) bool { return names[name] }) {
					t.Errorf("%v starts a goroutine, %v, that the table in %s does not have", set.Position(n.Pos()), of, packages)
				}
				return true
			})
		}
	}
	for key, exists := range found {
		if !exists {
			t.Errorf("%s: the table of goroutines has %s, which does not exist", packages, key)
		}
	}
}

// started returns the names by which the table may have the goroutine that n starts, and whether it starts
// one: the function that it runs or, if that has no name, those that it calls and the one around it.
func started(n ast.Node, around string) ([]string, bool) {
	run := func(f ast.Expr) []string {
		if lit, ok := f.(*ast.FuncLit); ok {
			return append(calls(lit), around)
		}
		return []string{nameOf(f)}
	}
	switch x := n.(type) {
	case *ast.GoStmt:
		return run(x.Call.Fun), true
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		if !ok || f.Sel.Name != "Go" && f.Sel.Name != "run" || len(x.Args) != 1 {
			return nil, false
		}
		switch x.Args[0].(type) {
		case *ast.FuncLit, *ast.SelectorExpr:
			return run(x.Args[0]), true
		}
	}
	return nil, false
}

// calls are the names of all functions that are called within n.
func calls(n ast.Node) []string {
	var names []string
	ast.Inspect(n, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			names = append(names, nameOf(c.Fun))
		}
		return true
	})
	return names
}

func nameOf(f ast.Expr) string {
	switch x := f.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// section is the text of ARCHITECTURE.md from a heading to the next one.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, page), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}
