package zklite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declared are the names of one package, its tests included.
type declared struct {
	names map[string]bool
	types map[string]map[string]bool // their fields and methods; nil: there may be others, of an embedded type
}

// qualified is a name in a comment: pkg.Name, or Type.Member.
var qualified = regexp.MustCompile(`(^|[\s(])([A-Za-z]\w*)\.([A-Z]\w*[a-z]\w*)`)

// TestComments_NamesExist: a name of ours in a comment leads to a declaration. It checks only names that cannot mean
// anything else: Type.Member for a type of the same package, and pkg.Name for a package that the file imports.
func TestComments_NamesExist(t *testing.T) {
	set := token.NewFileSet()
	trees, folders := map[string]*ast.File{}, map[string]*declared{}
	for _, file := range files(t, ".go") {
		tree, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		trees[file] = tree
		d := folders[path.Dir(file)]
		if d == nil {
			d = &declared{names: map[string]bool{}, types: map[string]map[string]bool{}}
			folders[path.Dir(file)] = d
		}
		for _, decl := range tree.Decls {
			d.add(decl)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(trees)) {
		imports := map[string]*declared{}
		for _, i := range trees[file].Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if own, ok := strings.CutPrefix(name, module+"/"); ok && i.Name == nil && folders[own] != nil {
				imports[path.Base(own)] = folders[own]
			}
		}
		for _, group := range trees[file].Comments {
			for _, c := range group.List {
				for _, m := range qualified.FindAllStringSubmatch(strings.TrimPrefix(c.Text, "//"), -1) {
					if members := folders[path.Dir(file)].types[m[2]]; members != nil && !members[m[3]] {
						t.Errorf("%v: got %s.%s in a comment, want a name that exists", set.Position(c.Pos()), m[2], m[3])
					}
					if pkg := imports[m[2]]; pkg != nil && !pkg.names[m[3]] {
						t.Errorf("%v: got %s.%s in a comment, want a name that exists", set.Position(c.Pos()), m[2], m[3])
					}
				}
			}
		}
	}
}

// add notes the names of a declaration.
func (d *declared) add(decl ast.Decl) {
	member := func(typ, name string) {
		if members, known := d.types[typ]; !known {
			d.types[typ] = map[string]bool{name: true}
		} else if members != nil {
			members[name] = true
		}
	}
	switch x := decl.(type) {
	case *ast.FuncDecl:
		if x.Recv == nil {
			d.names[x.Name.Name] = true
			return
		}
		typ := x.Recv.List[0].Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		switch generic := typ.(type) {
		case *ast.IndexExpr:
			typ = generic.X
		case *ast.IndexListExpr:
			typ = generic.X
		}
		if id, ok := typ.(*ast.Ident); ok {
			member(id.Name, x.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range x.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					d.names[id.Name] = true
				}
			case *ast.TypeSpec:
				d.names[s.Name.Name] = true
				var fields []*ast.Field
				switch typ := s.Type.(type) {
				case *ast.StructType:
					fields = typ.Fields.List
				case *ast.InterfaceType:
					fields = typ.Methods.List
				case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
					d.types[s.Name.Name] = nil // has what another type has
				}
				for _, f := range fields {
					for _, id := range f.Names {
						member(s.Name.Name, id.Name)
					}
					if len(f.Names) == 0 {
						d.types[s.Name.Name] = nil // embeds
					}
				}
			}
		}
	}
}
