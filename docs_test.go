package zklite_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestDocs_NamedTestsExist: a promise that names a test which does not exist
// is not tested.
func TestDocs_NamedTestsExist(t *testing.T) {
	out, err := exec.Command("git", "grep", "-hoE", "--untracked", `^func (Test|Fuzz|Benchmark)[A-Za-z0-9_]+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatalf("git grep: %v", err)
	}
	exists := map[string]bool{}
	for _, line := range strings.Fields(string(out)) {
		exists[line] = true
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)`")
	for _, file := range []string{"docs/guarantees.md", "docs/protocol.md", "docs/client.md", "docs/recipes.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if !exists[m[1]] {
				t.Errorf("%s names %s, which does not exist", file, m[1])
			}
		}
	}
}
