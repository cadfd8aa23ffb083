//go:build interop

package interop_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// quickstart writes the program of docs/quickstart.md in a language to a file, with the ensemble's addresses in the
// place of the documented ones.
func quickstart(t *testing.T, e *cluster.Ensemble, language, file string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n```"+language+"\n")
	program, _, found := strings.Cut(rest, "\n```\n")
	const servers = "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183"
	if !found || !strings.Contains(program, servers) {
		t.Fatalf("docs/quickstart.md has no program in %s for the servers %s", language, servers)
	}
	file = filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(program, servers, e.ConnectString())+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestInterop_QuickStarts runs the programs of docs/quickstart.md; those in Go and curl have TestQuickStart_Go and
// TestDocs_Commands.
func TestInterop_QuickStarts(t *testing.T) {
	e := ensemble(t)
	for _, c := range []struct {
		language, file, last string
		command              func(t *testing.T, file string) []string
	}{
		{"java", "Quick.java", "holding the lock", func(t *testing.T, file string) []string {
			return []string{"java", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
				cluster.CuratorClassPath(t), file}
		}},
		{"python", "quick.py", "holding the lock", func(t *testing.T, file string) []string {
			return append(cluster.Kazoo(t, "kazoo_checks.py")[:1], file) // its interpreter
		}},
		{"js", "quick.js", "leading", func(t *testing.T, file string) []string {
			npm := cluster.NeedTool(t, "/usr/bin/npm", "nodejs npm")
			for _, name := range []string{"package.json", "package-lock.json"} {
				data, err := os.ReadFile("../clients/node/" + name)
				if err == nil {
					err = os.WriteFile(filepath.Join(filepath.Dir(file), name), data, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			cluster.Execute(t, filepath.Dir(file), npm, "ci", "--ignore-scripts")
			return []string{"node", file}
		}},
		{"c", "quick.c", "leading", func(t *testing.T, file string) []string {
			cluster.NeedTool(t, "/usr/include/zookeeper/zookeeper.h", "gcc libc6-dev libzookeeper-mt-dev")
			program := strings.TrimSuffix(file, ".c")
			cluster.Execute(t, filepath.Dir(file), "gcc", "-Wall", "-Werror", "-DTHREADED", "-o", program, file, "-lzookeeper_mt")
			return []string{program}
		}},
	} {
		t.Run(c.language, func(t *testing.T) {
			file := quickstart(t, e, c.language, c.file)
			out := cluster.Execute(t, filepath.Dir(file), c.command(t, file)...)
			want := []string{"one", "changed", c.last}
			got := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { // what clients log is between
				return !slices.Contains(append(want, "following"), line)
			})
			if !slices.Equal(got, want) {
				t.Errorf("it prints\n%s\nwant %q", out, want)
			}
		})
	}
	atRest(t, e)
}
