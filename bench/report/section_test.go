package report

import (
	"os"
	"path/filepath"
	"testing"
)

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
