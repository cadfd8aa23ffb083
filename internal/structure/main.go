// Command structure measures how hard the code is to navigate: lines, the widest types and
// interfaces, and per package the files that use each other's names in circles. It reads the
// packages of this module without their tests and changes nothing:
//
//	go run ./internal/structure
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// listed is the output of `go list -json` for a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// counts are one package's numbers.
type counts struct {
	path           string
	files, circled int
	lines          int
	methods        map[string]int // of types
	interfaces     map[string]int // methods of interfaces
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	pkgs, exports, err := list()
	if err != nil {
		return err
	}
	var all []counts
	for _, p := range pkgs {
		c, err := count(p, exports)
		if err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		all = append(all, c)
	}
	print(out, all)
	return nil
}

// list returns the module's packages, and where the compiled form of each package is.
func list() (own []listed, exports map[string]string, err error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	exports = map[string]string{}
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return own, exports, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main && len(p.GoFiles) > 0 {
			own = append(own, p)
		}
	}
}

// count reads and type-checks one package.
func count(p listed, exports map[string]string) (counts, error) {
	c := counts{path: p.ImportPath, files: len(p.GoFiles), methods: map[string]int{}, interfaces: map[string]int{}}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			return c, err
		}
		files = append(files, f)
		c.lines += fset.File(f.Pos()).LineCount() - 1
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	pkg, err := conf.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return c, err
	}
	for _, name := range pkg.Scope().Names() {
		t, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		if named, ok := t.Type().(*types.Named); ok {
			c.methods[name] = named.NumMethods()
		}
		if i, ok := t.Type().Underlying().(*types.Interface); ok {
			c.interfaces[name] = i.NumMethods()
		}
	}
	c.circled = circled(uses(fset, pkg, info))
	return c, nil
}

// uses returns which files of a package use names that another declares: types, functions,
// variables, constants, methods and fields.
func uses(fset *token.FileSet, pkg *types.Package, info *types.Info) map[string]map[string]bool {
	arrows := map[string]map[string]bool{}
	for id, obj := range info.Uses {
		if obj.Pkg() != pkg || !outlivesFunction(pkg, obj) {
			continue
		}
		from, to := fset.File(id.Pos()).Name(), fset.File(obj.Pos()).Name()
		if arrows[from] == nil {
			arrows[from] = map[string]bool{}
		}
		arrows[from][to] = true
	}
	return arrows
}

func outlivesFunction(pkg *types.Package, obj types.Object) bool {
	switch o := obj.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return o.IsField() || o.Parent() == pkg.Scope()
	}
	return obj.Parent() == pkg.Scope()
}

// circled counts the nodes that can be reached from themselves by way of another.
func circled(arrows map[string]map[string]bool) int {
	n := 0
	for start := range arrows {
		seen := map[string]bool{}
		var visit func(at string)
		visit = func(at string) {
			for to := range arrows[at] {
				if !seen[to] && to != at {
					seen[to] = true
					visit(to)
				}
			}
		}
		visit(start)
		if seen[start] {
			n++
		}
	}
	return n
}

func print(out io.Writer, all []counts) {
	type row struct {
		name string
		n    int
	}
	var types, interfaces []row
	lines, files, inCircles := 0, 0, 0
	slices.SortFunc(all, func(a, b counts) int { return b.lines - a.lines })
	fmt.Fprintf(out, "%-46s %6s %6s %s\n", "package", "lines", "files", "of these in circles")
	for _, c := range all {
		lines, files, inCircles = lines+c.lines, files+c.files, inCircles+c.circled
		short := c.path[strings.LastIndex(c.path, "zk-lite/zk-lite")+len("zk-lite/zk-lite"):]
		fmt.Fprintf(out, "%-46s %6d %6d %d\n", "."+short, c.lines, c.files, c.circled)
		for name, n := range c.methods {
			types = append(types, row{"." + short + "." + name, n})
		}
		for name, n := range c.interfaces {
			interfaces = append(interfaces, row{"." + short + "." + name, n})
		}
	}
	fmt.Fprintf(out, "%-46s %6d %6d %d\n", "all", lines, files, inCircles)
	for _, list := range []struct {
		title string
		rows  []row
	}{{"methods of the largest types", types}, {"methods of the widest interfaces", interfaces}} {
		fmt.Fprintf(out, "\n%s\n", list.title)
		slices.SortFunc(list.rows, func(a, b row) int {
			if a.n != b.n {
				return b.n - a.n
			}
			return strings.Compare(a.name, b.name)
		})
		for _, r := range list.rows[:min(12, len(list.rows))] {
			fmt.Fprintf(out, "%-46s %6d\n", r.name, r.n)
		}
	}
}
