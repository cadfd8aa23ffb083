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

// logged are the folders whose warnings and errors docs/troubleshooting.md explains, except those of unlogged.
var logged = []string{"api", "app", "cmd/zk-lite", "consensus", "internal", "migration/mirror", "server"}

var unlogged = []string{
	"app/doctor",           // its findings are instructions themselves
	"consensus/raftlogger", // passes on raft's messages
	"internal/testkit", "internal/structure",
}

// logCalls are the functions that log, with the place of the message among their arguments: slog's, and those of ours
// whose parameter msg is one.
var logCalls = map[string]int{"Warn": 0, "Error": 0, "Log": 2, "warn": 0, "logOnce": 0}

// TestTroubleshooting_Messages: the page explains each warning and error that a server may log, and no other.
func TestTroubleshooting_Messages(t *testing.T) {
	compare(t, "What the log says", loggedMessages(t))
}

// compare compares the first column of a section's tables with the texts in the sources. A text that ends in … is
// the beginning of one.
func compare(t *testing.T, section string, messages map[string]string) {
	t.Helper()
	page := read(t, "docs/troubleshooting.md")
	_, page, found := strings.Cut(page, "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/troubleshooting.md has no section %q", section)
	}
	page, _, _ = strings.Cut(page, "\n## ")
	explained := map[string]bool{}
	for line := range strings.Lines(page) {
		text, ok := strings.CutPrefix(line, "| `")
		if !ok {
			continue
		}
		text, _, _ = strings.Cut(text, "` |")
		start, cut := strings.CutSuffix(text, "…")
		_, exact := messages[text]
		n := 0
		for m := range messages {
			if m == text || cut && !exact && strings.HasPrefix(m, start) {
				explained[m] = true
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q of the section %q stands for %d messages of the sources", text, section, n)
		}
	}
	for m, where := range messages {
		if !explained[m] {
			t.Errorf("docs/troubleshooting.md, section %q, does not explain %q (%s)", section, m, where)
		}
	}
}

// loggedMessages are the messages of warnings and errors in the sources, with their places. The part of a message
// that is not constant is written as ….
func loggedMessages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	eachCall(t, logged, func(s *source, call *ast.CallExpr) {
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return
		}
		at, ok := logCalls[selector.Sel.Name]
		if x, named := selector.X.(*ast.Ident); named && x.Name == "znode" {
			return // the type of the protocol's codes
		}
		if path.Dir(s.set.Position(call.Pos()).Filename) == "app/config" {
			at = 2 // of warn: what is wrong with a setting, after its place and its key
		}
		if !ok || len(call.Args) <= at || selector.Sel.Name == "Log" && s.isInfo(call) {
			return
		}
		if text := s.text(call.Args[at]); strings.Trim(text, "…") != "" {
			found[verb.ReplaceAllString(text, "…")] = s.set.Position(call.Pos()).String()
		} else if !s.passesOn(call.Args[at]) {
			t.Errorf("%v: the message cannot be found by this test", s.set.Position(call.Pos()))
		}
	})
	return found
}

// source is a file.
type source struct {
	set    *token.FileSet
	consts map[string]string // of its package and of the function, by name
	params map[string]bool   // parameters of the present function
}

// eachCall visits all calls in folders, except in tests.
func eachCall(t *testing.T, folders []string, visit func(*source, *ast.CallExpr)) {
	t.Helper()
	packages := map[string][]string{}
	for _, file := range files(t, ".go") {
		in := func(name string) bool { return file == name || strings.HasPrefix(file, name+"/") }
		if !strings.HasSuffix(file, "_test.go") && slices.ContainsFunc(folders, in) && !slices.ContainsFunc(unlogged, in) {
			packages[path.Dir(file)] = append(packages[path.Dir(file)], file)
		}
	}
	for _, names := range packages {
		s := &source{set: token.NewFileSet(), consts: map[string]string{}}
		var decls []ast.Decl
		for _, name := range names {
			tree, err := parser.ParseFile(s.set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			decls = append(decls, tree.Decls...)
		}
		for _, d := range decls {
			if _, ok := d.(*ast.GenDecl); ok {
				ast.Inspect(d, s.note)
			}
		}
		for _, d := range decls {
			s.visit(d, visit)
		}
	}
}

// visit visits the calls of one declaration.
func (s *source) visit(d ast.Decl, visit func(*source, *ast.CallExpr)) {
	inner := &source{set: s.set, consts: maps.Clone(s.consts), params: map[string]bool{}}
	if f, ok := d.(*ast.FuncDecl); ok {
		ast.Inspect(f, inner.note)
		for _, p := range f.Type.Params.List {
			for _, name := range p.Names {
				inner.params[name.Name] = true
			}
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			visit(inner, call)
		}
		return true
	})
}

// note notes constants.
func (s *source) note(n ast.Node) bool {
	if v, ok := n.(*ast.ValueSpec); ok {
		for i, name := range v.Names {
			if i < len(v.Values) {
				if text := s.text(v.Values[i]); text != "…" {
					s.consts[name.Name] = text
				}
			}
		}
	}
	return true
}

// text is the value of a string.
func (s *source) text(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return s.text(x.X) + s.text(x.Y)
	case *ast.Ident:
		if text, ok := s.consts[x.Name]; ok && !s.params[x.Name] {
			return text
		}
	}
	return "…"
}

// passesOn reports whether a message is the parameter of a function in logCalls, or a setting's notice.
func (s *source) passesOn(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "msg" && s.params["msg"]
	case *ast.SelectorExpr:
		return x.Sel.Name == "Text"
	}
	return false
}

// isInfo reports whether a call of Log has a constant level below a warning.
func (s *source) isInfo(call *ast.CallExpr) bool {
	level, ok := call.Args[1].(*ast.SelectorExpr)
	return ok && (level.Sel.Name == "LevelInfo" || level.Sel.Name == "LevelDebug")
}

// refusing are the folders and files whose errors tell an operator why something is refused: at the start of a
// server, in `recover`, and in the commands for members, levels and backups.
var refusing = []string{
	"consensus/founding", "consensus/membership", "consensus/peerkeys", "consensus/recovery", "consensus/storage",
	"server/backup/restore.go",
	"cmd/zk-lite/recover.go", "cmd/zk-lite/cli/members.go", "cmd/zk-lite/cli/memberchange.go",
	"cmd/zk-lite/cli/backup.go", "cmd/zk-lite/cli/backupfiles.go",
}

// TestTroubleshooting_Refusals: the page explains each refusal, and has no others.
func TestTroubleshooting_Refusals(t *testing.T) {
	compare(t, "What is refused", refusals(t))
}

var verb = regexp.MustCompile(`%[ .0-9]*[a-z]`)

// refusals are the texts of errors, except those that only add context to another one.
func refusals(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	eachCall(t, refusing, func(s *source, call *ast.CallExpr) {
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || len(call.Args) == 0 || selector.Sel.Name != "Errorf" && selector.Sel.Name != "New" {
			return
		}
		// A text that begins or ends with another error only adds to it.
		if text := s.text(call.Args[0]); text != "…" && !strings.HasPrefix(text, "%w") && !strings.HasSuffix(text, ": %w") {
			text = verb.ReplaceAllString(text, "…")
			found[text] = s.set.Position(call.Pos()).String()
		}
	})
	return found
}

// logKeys are the functions that log and take names and values as further arguments, with the place of the first
// name.
var logKeys = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "With": 0, "warn": 1, "logRefusal": 1,
}

// TestTroubleshooting_Fields: the page has each field that several log lines have, so that one thing does not get
// two names.
func TestTroubleshooting_Fields(t *testing.T) {
	uses, fields := map[string]int{}, map[string]string{}
	eachCall(t, logged, func(s *source, call *ast.CallExpr) {
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return
		}
		at, ok := logKeys[selector.Sel.Name]
		if !ok || path.Dir(s.set.Position(call.Pos()).Filename) == "app/config" {
			return
		}
		for ; at < len(call.Args); at += 2 {
			if name := s.text(call.Args[at]); name != "…" {
				if uses[name]++; uses[name] > 1 {
					fields[name] = s.set.Position(call.Pos()).String()
				}
			}
		}
	})
	compare(t, "Fields", fields)
}

// TestTroubleshooting_SameEventSameWords: two messages that share most of their words are one event in two wordings.
func TestTroubleshooting_SameEventSameWords(t *testing.T) {
	messages := slices.Sorted(maps.Keys(loggedMessages(t)))
	for i, a := range messages {
		for _, b := range messages[:i] {
			words, shared := strings.Fields(a), 0
			for _, w := range words {
				if slices.Contains(strings.Fields(b), w) {
					shared++
				}
			}
			if most := max(len(words), len(strings.Fields(b))); shared*4 > most*3 {
				t.Errorf("%q and %q: is that not the same event?", a, b)
			}
		}
	}
}
