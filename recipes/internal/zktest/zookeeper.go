//go:build zookeeper

package zktest

import (
	"fmt"
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/zookeeper"
)

// process is an Apache ZooKeeper server.
type process struct{ server *zookeeper.Server }

func startProcesses(tb testing.TB, n int) (all []process) {
	tb.Helper()
	for _, s := range zookeeper.Start(tb, n).Servers {
		all = append(all, process{s})
	}
	return all
}

func (p process) address() string { return p.server.Address }

// Start starts the server, again after Stop. It does not wait until it serves.
func (p process) Start(testing.TB) { p.server.Start() }

// Stop kills the server, if it runs.
func (p process) Stop() { p.server.Kill() }

// Main runs the tests of a package with one server that all of them may use, and
// returns the exit code. It is for TestMain: one server for all is much quicker
// than one for each.
func Main(m *testing.M, use func(*Server)) int {
	tb := new(mainTB)
	defer tb.cleanup()
	use(Start(tb, 1).Servers[0])
	return m.Run()
}

// mainTB is the testing.TB of TestMain, which has none.
type mainTB struct {
	testing.TB // nil: the methods below are all that is called
	cleanups   []func()
}

func (tb *mainTB) Helper() {}

func (tb *mainTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

func (tb *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "zktest")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system removes the rest
	return dir
}

// Fatal panics: there is no test to fail yet.
func (tb *mainTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (tb *mainTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (tb *mainTB) cleanup() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
}
