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
	javac := cluster.NeedTool(t, "/usr/bin/javac", "default-jdk-headless")
	classPath, dir := cluster.ClassPath(t), t.TempDir()
	run(t, dir, javac, "-encoding", "UTF-8", "-cp", classPath, "-d", dir,
		testdata(t, "JavaChecks.java"), testdata(t, "ReadOnlyChecks.java"))
	e := readOnlyEnsemble(t)
	drive(t, e, dir, "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", dir+":"+classPath, "ReadOnlyChecks", e.ConnectString())
}

// TestInterop_ReadOnly_Kazoo runs testdata/readonly_checks.py: clients with read_only, whose majority dies and comes
// back.
func TestInterop_ReadOnly_Kazoo(t *testing.T) {
	cluster.NeedTool(t, python, "python3")
	cluster.NeedTool(t, "/usr/lib/python3/dist-packages/kazoo", "python3-kazoo")
	e := readOnlyEnsemble(t)
	drive(t, e, t.TempDir(), python, testdata(t, "readonly_checks.py"), e.ConnectString())
}

// TestInterop_ReadOnly_C does the same with ZOO_READONLY.
func TestInterop_ReadOnly_C(t *testing.T) {
	program := cChecks(t, "-lzookeeper_mt")
	e := readOnlyEnsemble(t)
	drive(t, e, t.TempDir(), program, e.ConnectString(), "read-only")
}
