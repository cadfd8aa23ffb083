package cluster

import (
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// apache runs Apache ZooKeeper with Debian's Java libraries.
type apache struct{}

func (apache) command(s *Server) ([]string, error) {
	// The heap is small: the tests' trees are.
	flags := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dzookeeper.forceSync=no", // it is an oracle of results, not of durability
		"-Dzookeeper.preAllocSize=1024"}
	return zookeeper.Command(s.configFile(), append(flags, s.e.opts.JavaFlags...)...)
}

func (apache) config(_ *Server, _ map[string]string) {}

// NeedTool fails the test if what a glob pattern names is not installed. There
// is no skipping: a test that did not run has shown nothing.
func NeedTool(t testing.TB, pattern, debianPackages string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s is missing; install it with: apt-get install -y %s", pattern, debianPackages)
	}
	return found[0]
}

// ClassPath is what a Java program needs that uses ZooKeeper's client or its recipes.
func ClassPath(t testing.TB) string {
	t.Helper()
	path, err := zookeeper.ClassPath()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
