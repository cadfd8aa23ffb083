package check

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whoever reads a violation finds the promise in docs/guarantees.md.
func TestGuarantees_AreNamedInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:f\.add|\.violation|Guarantee:)\(?\s*"([^"]+)"`)
	found := 0
	for _, pattern := range []string{"*.go", "../sim/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range named.FindAllStringSubmatch(string(text), -1) {
				found++
				if !strings.Contains(string(docs), "| **"+m[1]) {
					t.Errorf("%s names %q, which is no guarantee of docs/guarantees.md", file, m[1])
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names were found: the pattern does not fit any more", found)
	}
}
