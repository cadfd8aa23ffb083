package cluster

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// The environment variables that the kit reads.
const (
	// BinaryVariable names the zk-lite binary to test. Main sets it to one that
	// it has built, unless it is set already.
	BinaryVariable = "ZK_LITE_TEST_BINARY"
	// RaceVariable, when it is not empty, makes Main build with the race
	// detector, which needs cgo.
	RaceVariable = "ZK_LITE_TEST_RACE"
)

// Main is called by the TestMain of every package that starts servers. It builds the binary once,
// runs the tests and returns the exit code. With -short it runs none: each takes seconds.
func Main(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		fmt.Println("no test of real servers is run with -short")
		return 0
	}
	if os.Getenv(BinaryVariable) != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "zk-lite-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration: no directory for the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "zk-lite")
	if err := Build(binary); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		return 1
	}
	if err := os.Setenv(BinaryVariable, binary); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		return 1
	}
	return m.Run()
}

// Build builds zk-lite from this checkout, with further flags of go build.
func Build(binary string, flags ...string) error {
	args, cgo := append([]string{"build", "-o", binary}, flags...), "CGO_ENABLED=0"
	if os.Getenv(RaceVariable) != "" {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	c := exec.Command("go", append(args, "github.com/zk-lite/zk-lite/cmd/zk-lite")...)
	c.Env = append(os.Environ(), cgo)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building zk-lite: %w\n%s", err, out)
	}
	return nil
}

// zkLite runs the binary that Main has built.
type zkLite struct{}

func (zkLite) command(s *Server) ([]string, error) {
	binary := cmp.Or(s.Binary, os.Getenv(BinaryVariable))
	if binary == "" {
		return nil, fmt.Errorf("%s is not set; the package's TestMain must call cluster.Main",
			BinaryVariable)
	}
	return []string{binary, "server", "--config", s.configFile()}, nil
}

func (zkLite) config(s *Server, set map[string]string) {
	set["admin.enableServer"] = "true"
	set["admin.serverAddress"] = s.host()
	set["admin.serverPort"] = fmt.Sprint(s.httpPort)
}

// Run runs another command of the program with the server's configuration, and returns its output.
func (s *Server) Run(command string, flags ...string) (said string, err error) {
	line, err := s.e.program.command(s)
	if err != nil {
		return "", err
	}
	line[1] = command
	c := exec.Command(line[0], append(line[1:], flags...)...)
	c.Dir = s.dir
	out, err := c.CombinedOutput()
	return string(out), err
}

// apache runs Apache ZooKeeper of Maven Central's.
type apache struct{}

func (apache) command(s *Server) ([]string, error) {
	// The heap is small: the tests' trees are.
	flags := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dzookeeper.forceSync=no", // it is an oracle of results, not of durability
		"-Dzookeeper.preAllocSize=1024"}
	flags = append(flags, s.e.opts.JavaFlags...)
	return zookeeper.Command(cmp.Or(s.e.opts.ZooKeeper, zookeeper.Oracle), s.configFile(), flags...)
}

func (apache) config(_ *Server, _ map[string]string) {}

// NeedTool fails the test if no file matches a glob pattern of a tool. There is no skipping: a
// test that did not run has shown nothing.
func NeedTool(t testing.TB, pattern, debianPackages string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s is missing; install it with: apt-get install -y %s", pattern, debianPackages)
	}
	return found[0]
}

// ClassPath is the class path of a Java program that uses ZooKeeper's client or its recipes.
func ClassPath(t testing.TB) string {
	t.Helper()
	path, err := zookeeper.ClassPath()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
