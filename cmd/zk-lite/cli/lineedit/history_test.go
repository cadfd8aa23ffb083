package lineedit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHistory_KeepsLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "history")
	h, err := OpenHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	h.Secret = func(line string) bool { return strings.HasPrefix(line, "addauth") }
	for _, line := range []string{"ls /", "ls /", "", "  ", " hidden", "addauth digest a:b", "get /a"} {
		h.Add(line)
	}
	if h.Len() != 4 || h.At(0) != "get /a" || h.At(3) != "ls /" || h.Err() != nil {
		t.Errorf("%d lines, the newest %q, error %v", h.Len(), h.At(0), h.Err())
	}
	b, err := os.ReadFile(file)
	if err != nil || string(b) != "ls /\nget /a\n" {
		t.Errorf("the file has %q, error %v", b, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

func TestHistory_IsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h, err := OpenHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxHistory + 10 {
		h.Add(fmt.Sprint("line ", i))
	}
	if h.Len() != maxHistory {
		t.Errorf("%d lines", h.Len())
	}
	if h, err = OpenHistory(file); err != nil || h.Len() != maxHistory || h.At(h.Len()-1) != "line 10" {
		t.Errorf("%d lines, the oldest %q, error %v", h.Len(), h.At(h.Len()-1), err)
	}
	b, err := os.ReadFile(file)
	if err != nil || strings.Count(string(b), "\n") != maxHistory {
		t.Errorf("the file has %d lines, error %v", strings.Count(string(b), "\n"), err)
	}
}
