package zklite_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testRules are patterns that no test may contain, and what it does instead.
var testRules = []struct {
	forbidden *regexp.Regexp
	instead   string
}{
	// A test that waits for the real clock is slow on a fast machine and fails on a slow one.
	{regexp.MustCompile(`time\.Sleep\(`), "wait for a condition, or use clock.Sleep in synctest.Test"},
	// A failure must be repeatable, and a fault that is found by chance must not fail an unrelated change.
	{regexp.MustCompile(`[^.\w]rand\.(Uint64|Int|IntN|Int64N|N|Float64|Perm|Shuffle)\(|time\.Now\(\)\.UnixNano\(\)`),
		"take a source from internal/testkit/seed"},
}

func TestTests_KeepTheRules(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."), d.IsDir() && strings.HasPrefix(d.Name(), "_"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") || path == "testrules_test.go":
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		for _, rule := range testRules {
			if found := rule.forbidden.Find(text); found != nil {
				t.Errorf("%s: got %s, want none: %s", path, found, rule.instead)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d test files read, %v", files, err)
	}
}
