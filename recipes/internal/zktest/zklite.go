//go:build !zookeeper

package zktest

import (
	"testing"

	"github.com/zk-lite/zk-lite/zklitetest"
)

// process is a zk-lite server in this process.
type process struct {
	ensemble *zklitetest.Ensemble
	index    int
}

// The sessions are those of zookeeper.go.
var sessions = zklitetest.WithSetting("minSessionTimeout", "1000")

func startProcesses(tb testing.TB, n int) []process {
	tb.Helper()
	return processes(zklitetest.Start(tb, zklitetest.WithServers(n), sessions))
}

func processes(e *zklitetest.Ensemble) (all []process) {
	for i := range e.Addrs() {
		all = append(all, process{e, i})
	}
	return all
}

// Main runs the tests of a package with one server that all of them may use, and
// returns the exit code. It is for TestMain: one server for all is much quicker
// than one for each.
func Main(m *testing.M, use func(*Server)) int {
	return zklitetest.Main(m, func(e *zklitetest.Ensemble) { use(newEnsemble(processes(e)).Servers[0]) }, sessions)
}

func (p *process) address() string { return p.ensemble.Addrs()[p.index] }

// Start starts the server again after Stop.
func (p *process) Start(testing.TB) { p.ensemble.Restart(p.index) }

// Stop stops the server, if it runs.
func (p *process) Stop() { p.ensemble.Stop(p.index) }
