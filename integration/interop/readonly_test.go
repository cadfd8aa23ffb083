//go:build interop

package interop_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// readOnlyEnsemble starts servers that serve reads without a majority.
func readOnlyEnsemble(t *testing.T) *cluster.Ensemble {
	t.Helper()
	return cluster.Start(t, 3, cluster.Options{Config: map[string]string{"readonlymode.enabled": "true"}})
}

// TestInterop_ReadOnly_Java runs testdata/ReadOnlyChecks.java: clients with canBeReadOnly, whose majority dies and comes
// back.
func TestInterop_ReadOnly_Java(t *testing.T) {
	java := cluster.Java(t, "JavaChecks.java", "ReadOnlyChecks.java")
	e := readOnlyEnsemble(t)
	drive(t, e, t.TempDir(), append(java, "ReadOnlyChecks", e.ConnectString())...)
}

// TestInterop_ReadOnly_Kazoo runs testdata/readonly_checks.py: clients with read_only, whose majority dies and comes
// back.
func TestInterop_ReadOnly_Kazoo(t *testing.T) {
	kazoo := cluster.Kazoo(t, "readonly_checks.py")
	e := readOnlyEnsemble(t)
	drive(t, e, t.TempDir(), append(kazoo, e.ConnectString())...)
}

// TestInterop_ReadOnly_C does the same with ZOO_READONLY.
func TestInterop_ReadOnly_C(t *testing.T) {
	program := cChecks(t, "-lzookeeper_mt")
	e := readOnlyEnsemble(t)
	drive(t, e, t.TempDir(), program, e.ConnectString(), "read-only")
}
