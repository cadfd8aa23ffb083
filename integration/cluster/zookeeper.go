package cluster

import (
	"path/filepath"
	"strings"
	"testing"
)

// javaDir is where Debian keeps Java libraries.
const javaDir = "/usr/share/java"

// apache runs Apache ZooKeeper with Debian's Java libraries.
type apache struct{ classPath string }

func (a apache) command(s *Server) ([]string, error) {
	// The heap is small: the tests' trees are.
	args := []string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dzookeeper.forceSync=no", // it is an oracle of results, not of durability
		"-Dzookeeper.preAllocSize=1024"}
	args = append(args, s.e.opts.JavaFlags...)
	return append(args, "-cp", a.classPath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.configFile()), nil
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

// ClassPath is what a Java program needs that uses ZooKeeper's client or its
// recipes, in Debian.
func ClassPath(t testing.TB) string {
	t.Helper()
	return classPath(t)
}

func classPath(t testing.TB) string {
	t.Helper()
	const packages = "zookeeper libzookeeper-java default-jdk-headless"
	NeedTool(t, "/usr/bin/java", packages)
	NeedTool(t, javaDir+"/zookeeper.jar", packages)
	var all []string
	for _, pattern := range []string{"zookeeper.jar", "zookeeper-jute.jar",
		"zookeeper-recipes-*.jar", "slf4j-api.jar", "slf4j-simple.jar", "netty-*.jar",
		"jackson-*.jar", "snappy-java.jar", "commons-io.jar", "commons-lang.jar", "commons-cli.jar",
		"metrics-core.jar", "jetty9-s*.jar", "jetty9-util*.jar",
		"jetty9-http.jar", "jetty9-io.jar", "*servlet-api*.jar", "jline*.jar"} {
		found, err := filepath.Glob(filepath.Join(javaDir, pattern))
		if err != nil {
			t.Fatalf("looking for %s: %v", pattern, err)
		}
		all = append(all, found...)
	}
	return strings.Join(all, ":")
}
