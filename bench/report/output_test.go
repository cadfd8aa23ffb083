package report

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutput_Save_DocumentAndRaw: the document of the checkout unless there is another,
// and everything as JSON beside it.
func TestOutput_Save_DocumentAndRaw(t *testing.T) {
	root := t.TempDir()
	docs := filepath.Join(root, "docs", "BENCHMARKS.md")
	other := filepath.Join(root, "other.md")
	const empty = "head\n<!-- begin s -->\nold\n<!-- end s -->\ntail\n"
	if err := os.Mkdir(filepath.Dir(docs), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{docs, other} {
		if err := os.WriteFile(file, []byte(empty), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw := filepath.Join(root, "raw.json")
	for _, c := range []struct{ out, file string }{{"", docs}, {other, other}} {
		o := Output{Section: "s", Out: c.out, Raw: raw}
		if err := o.Save(root, "new\n", []int{1, 2}, errors.New("still running")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(c.file)
		if err != nil || string(text) != strings.Replace(empty, "old", "new", 1) {
			t.Errorf("-out %q: %v, %q", c.out, err, text)
		}
		if text, err := os.ReadFile(raw); err != nil || string(text) != "[\n 1,\n 2\n]" {
			t.Errorf("-raw: %v, %q", err, text)
		}
	}
	for _, o := range []Output{
		{Section: "s", Out: filepath.Join(root, "none.md")},
		{Section: "unknown"},
		{Section: "s", Raw: filepath.Join(root, "none", "raw.json")},
	} {
		if err := o.Save(root, "new\n", nil, nil); err == nil {
			t.Errorf("%+v: no error", o)
		}
		if early := o.Check(root); (early == nil) != (o.Raw != "") {
			t.Errorf("%+v: checked beforehand: %v", o, early)
		}
	}
	for _, o := range []Output{{Section: "s"}, {Section: "s", Out: other}, {Section: "s", Out: "-"}} {
		if err := o.Check(root); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestOutput_Save_StandardOutputOnce: not after every step, but after an interrupt.
func TestOutput_Save_StandardOutputOnce(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stdout := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = stdout }()
	o := Output{Section: "s", Out: "-"}
	for text, end := range map[string]error{
		"running": errors.New("still running"), "stopped\n": context.Canceled, "all\n": nil,
	} {
		if err := o.Save("", text, nil, end); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file.Name())
	if got := string(text); err != nil || got != "stopped\nall\n" && got != "all\nstopped\n" {
		t.Errorf("%v, %q", err, got)
	}
}
