package report

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOutput_Save_FileAndRaw: the file of the day unless there is another, and
// everything as JSON beside it.
func TestOutput_Save_FileAndRaw(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bench", "results"), 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	daily, other := filepath.Join(root, "bench", "results", "2026-01-02.md"), filepath.Join(root, "other.md")
	raw := filepath.Join(root, "raw.json")
	for _, c := range []struct{ out, file, title string }{{"", daily, "2026-01-02"}, {other, other, "other"}} {
		o := Output{Out: c.out, Raw: raw}
		if err := o.Save(o.File(root, began), "s", "new\n", []int{1, 2}, errors.New("still running")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(c.file)
		if got := string(text); err != nil || !strings.HasPrefix(got, "# Results of "+c.title+"\n") ||
			!strings.HasSuffix(got, "\n\n<!-- begin s -->\nnew\n<!-- end s -->\n") {
			t.Errorf("-out %q: %v, %q", c.out, err, text)
		}
		if text, err := os.ReadFile(raw); err != nil || string(text) != "{\n \"s\": [\n  1,\n  2\n ]\n}" {
			t.Errorf("-raw: %v, %q", err, text)
		}
	}
	for _, o := range []Output{
		{Out: filepath.Join(root, "none", "out.md")},
		{Raw: filepath.Join(root, "none", "raw.json")},
	} {
		if err := o.Save(o.File(root, began), "s", "new\n", nil, nil); err == nil {
			t.Errorf("%+v: no error", o)
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
	o := Output{Out: "-"}
	for text, end := range map[string]error{
		"running": errors.New("still running"), "stopped\n": context.Canceled, "all\n": nil,
	} {
		if err := o.Save("-", "s", text, nil, end); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file.Name())
	if got := string(text); err != nil || got != "stopped\nall\n" && got != "all\nstopped\n" {
		t.Errorf("%q, %v, want what was complete or stopped", got, err)
	}
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := Middle(c.v); got != c.want {
			t.Errorf("%v: %g, want %g", c.v, got, c.want)
		}
	}
}

func TestReplace_KeepsWhatStandsAround(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n<!-- begin x -->\nold\n<!-- end x -->\nafter\n")
	if err := Replace(file, "x", "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "before\n<!-- begin x -->\nnew\n<!-- end x -->\nafter\n" {
		t.Errorf("%q, want the section replaced", got)
	}
	if err := Replace(file, "y", "more\n"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "before\n<!-- begin x -->\nnew\n<!-- end x -->\nafter\n\n"+
		"<!-- begin y -->\nmore\n<!-- end y -->\n" {
		t.Errorf("%q, want the section added", got)
	}
	write("<!-- begin x -->\nno end")
	if err := Replace(file, "x", "new"); err == nil {
		t.Error("no error without the mark of the end")
	}
}
