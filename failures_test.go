package zklite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFailures_SayWhatIsWrong: a failure prints what it got and what it wanted, in a sentence. Values alone make a
// reader look for the test, and guess which of them is wrong. An error alone is enough if there is one: it is a sentence.
func TestFailures_SayWhatIsWrong(t *testing.T) {
	for _, name := range files(t, "_test.go") {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if x, isIf := n.(*ast.IfStmt); isIf && len(x.Body.List) > 0 && mayBeNil(x.Cond) {
				call, ok = errorAlone(x.Body.List[0])
			} else {
				ok = ok && isBare(call)
			}
			if ok {
				t.Errorf("%s: prints values without a word, want what it got and wanted in a sentence",
					set.Position(call.Pos()))
			}
			return true
		})
	}
}

// errorAlone returns a failure that prints an error and nothing else.
func errorAlone(x ast.Stmt) (*ast.CallExpr, bool) {
	s, ok := x.(*ast.ExprStmt)
	if !ok {
		return nil, false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 || !isError(call.Args[0]) {
		return nil, false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return call, ok && (f.Sel.Name == "Error" || f.Sel.Name == "Fatal")
}

// mayBeNil reports whether the error in a condition may be nil if the condition is true: to print it says nothing then.
func mayBeNil(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return mayBeNil(x.X)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LOR:
			return mayBeNil(x.X) || mayBeNil(x.Y)
		case token.LAND:
			return mayBeNil(x.X) && mayBeNil(x.Y)
		case token.NEQ:
			return !isError(x.X)
		}
	case *ast.CallExpr: // errors.Is, errors.As
		return false
	}
	return true
}

// isBare reports whether a call is a failure of a test without a word. It knows no types: a failure is what is named
// Error, Fatal, Errorf or Fatalf, and an error is what is named like one.
func isBare(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	if x, ok := f.X.(*ast.Ident); ok && (x.Name == "znode" || x.Name == "fmt") {
		return false // a conversion, or an error
	}
	last := call.Args[len(call.Args)-1]
	switch f.Sel.Name {
	case "Error", "Fatal":
		return !slices.ContainsFunc(call.Args, hasText) && (len(call.Args) > 1 || !isError(last))
	case "Errorf", "Fatalf":
		format, ok := call.Args[0].(*ast.BasicLit)
		if !ok || hasWord(format) {
			return false
		}
		return len(call.Args) > 3 || !isError(last) // where, and an error
	}
	return false
}

// hasText reports whether an argument contains a string of the test's own.
func hasText(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return x.Kind == token.STRING
	case *ast.BinaryExpr:
		return hasText(x.X) || hasText(x.Y)
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		return ok && strings.HasPrefix(f.Sel.Name, "Sprint") && slices.ContainsFunc(x.Args, hasText)
	}
	return false
}

var (
	formatVerb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z]`)
	letter     = regexp.MustCompile(`\pL`)
)

// hasWord reports whether a format has a letter besides its verbs.
func hasWord(format *ast.BasicLit) bool {
	text, err := strconv.Unquote(format.Value)
	if err != nil {
		return true
	}
	return letter.MatchString(formatVerb.ReplaceAllString(text, ""))
}

// isError reports whether an expression is named as an error: err, x.Err(), errors.Join(...).
func isError(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(x.Name), "err")
	case *ast.SelectorExpr:
		p, ok := x.X.(*ast.Ident)
		return isError(x.Sel) || ok && p.Name == "errors"
	case *ast.CallExpr:
		return isError(x.Fun)
	}
	return false
}
