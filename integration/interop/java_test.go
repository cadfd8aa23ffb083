//go:build interop

package interop_test

import (
	"testing"

	"github.com/zk-lite/zk-lite/integration/cluster"
)

// TestInterop_Java compiles and runs testdata/JavaChecks.java: the operations,
// watches and recipes of ZooKeeper's own client.
func TestInterop_Java(t *testing.T) {
	javac := cluster.NeedTool(t, "/usr/bin/javac", "default-jdk-headless")
	classPath, dir := cluster.ClassPath(t), t.TempDir()
	run(t, dir, javac, "-encoding", "UTF-8", "-cp", classPath, "-d", dir, testdata(t, "JavaChecks.java"))
	e := ensemble(t)
	drive(t, e, dir, "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", dir+":"+classPath, "JavaChecks", e.ConnectString())
}
