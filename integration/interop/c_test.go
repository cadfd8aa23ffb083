//go:build interop

package interop_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// TestInterop_C compiles and runs testdata/c_checks.c: the operations and
// watches of the multi-threaded C client.
func TestInterop_C(t *testing.T) {
	gcc := cluster.NeedTool(t, "/usr/bin/gcc", "gcc libc6-dev")
	cluster.NeedTool(t, "/usr/include/zookeeper/zookeeper.h", "libzookeeper-mt-dev")
	dir := t.TempDir()
	program := filepath.Join(dir, "c_checks")
	run(t, dir, gcc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DTHREADED", "-o", program,
		testdata(t, "c_checks.c"), "-lzookeeper_mt", "-lpthread")
	e := ensemble(t)
	drive(t, e, dir, program, e.ConnectString())
	t.Run("cli_mt", func(t *testing.T) {
		cli := cluster.NeedTool(t, "/usr/lib/zookeeper/bin/cli_mt", "zookeeper-bin")
		out := run(t, dir, cli, e.ConnectString(), "cmd:ls /")
		if !strings.Contains(out, "zookeeper") || !strings.Contains(out, "rc = 0") {
			t.Error(out)
		}
	})
}
