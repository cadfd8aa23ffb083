//go:build interop

package interop_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// python is Debian's, which has Debian's kazoo; another one first in the path
// may not.
const python = "/usr/bin/python3"

// TestInterop_Kazoo runs testdata/kazoo_checks.py: kazoo's operations, watches
// and recipes.
func TestInterop_Kazoo(t *testing.T) {
	cluster.NeedTool(t, python, "python3")
	cluster.NeedTool(t, "/usr/lib/python3/dist-packages/kazoo", "python3-kazoo")
	e := ensemble(t)
	drive(t, e, t.TempDir(), python, testdata(t, "kazoo_checks.py"), e.ConnectString())
}
