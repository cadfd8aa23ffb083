//go:build interop

package inspect_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
	"github.com/zk-lite/zk-lite/migration/inspect"
)

// tool runs one of ZooKeeper's own tools on a file.
func tool(t *testing.T, class, path string) string {
	t.Helper()
	classPath, err := zookeeper.ClassPath()
	must(t, err)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "java", append(zookeeper.Flags(), "-cp", classPath, class, path)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ZooKeeper's tool %s on %s: error %v, want none\n%s", class, path, err, stderr.String())
		t.Fatalf("%s of %s failed: %v\n%s", class, path, err, stderr.String())
	}
	return string(out)
}

// numbers are the fields of each znode and each session in the text of a snapshot, numbers as such.
func numbers(text string) (all []string) {
	for block := range strings.SplitSeq(text, "----\n") {
		path, rest, _ := strings.Cut(block, "\n")
		if strings.HasPrefix(path, "/") && !strings.Contains(path, ": ") {
			for _, m := range regexp.MustCompile(`(?m)^  (\w+) = (0x[0-9a-f]+|-?\d+)( |$)`).FindAllStringSubmatch(rest, -1) {
				all = append(all, fmt.Sprintf("%s %s=%d", path, m[1], parse(m[2])))
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(0x[0-9a-f]+), (\d+), (\d+)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, fmt.Sprintf("session %d %s %s", parse(m[1]), m[2], m[3]))
	}
	slices.Sort(all)
	return all
}

func parse(text string) uint64 {
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return n
	}
	n, _ := strconv.ParseInt(text, 0, 64)
	return uint64(n)
}

// What is printed of a snapshot is what SnapshotFormatter prints, and of a log what TxnLogToolkit prints.
func TestFile_LikeZooKeepersTools(t *testing.T) {
	for _, path := range []string{"3.4.14/version-2/snapshot.21", "3.8.6/version-2/snapshot.35", "3.9.5/version-2/snapshot.1d.snappy"} {
		path = filepath.Join("../datadir/testdata/origin", path)
		got, err := show(t, path, inspect.Options{})
		must(t, err)
		theirs := numbers(tool(t, "org.apache.zookeeper.server.SnapshotFormatter", path))
		if len(theirs) < 100 {
			t.Fatalf("%s: SnapshotFormatter prints %d fields, want those of all znodes", path, len(theirs))
		}
		if ours := numbers(got); !slices.Equal(ours, theirs) {
			t.Errorf("%s: inspect prints\n%s\nSnapshotFormatter prints\n%s", path, strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
		}
	}
	head := regexp.MustCompile(`session 0x[0-9a-f]+ cxid 0x[0-9a-f]+ zxid 0x[0-9a-f]+ \w+`)
	for _, path := range []string{"3.4.14/version-2/log.23", "3.8.6/version-2/log.17", "3.9.5/version-2/log.1f"} {
		path = filepath.Join("../datadir/testdata/origin", path)
		got, err := show(t, path, inspect.Options{})
		must(t, err)
		text := tool(t, "org.apache.zookeeper.server.persistence.TxnLogToolkit", path)
		text = strings.ReplaceAll(text, "createTtl", "createTTL") // as ZooDefs.OpCode has it
		theirs := head.FindAllString(text, -1)
		if ours := head.FindAllString(got, -1); len(theirs) < 15 || !slices.Equal(ours, theirs) {
			t.Errorf("%s: inspect prints\n%s\nTxnLogToolkit prints\n%s", path, strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
		}
	}
}
