package cluster

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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

// Main is to be called by the TestMain of every package that starts servers.
// It builds the binary once, runs the tests and returns the exit code. With -short it runs none:
// each takes seconds.
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
