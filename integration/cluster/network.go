package cluster

import (
	"os"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/network"
)

// UnprivilegedVariable is an environment variable which, when it is not empty, says
// that this machine permits neither network namespaces nor mounts, so that what needs
// them may be left out. Without it, a machine that does not permit them fails the test.
const UnprivilegedVariable = "ZK_LITE_UNPRIVILEGED"

// Privileged reports whether tests that need network namespaces or mounts are to run;
// see UnprivilegedVariable.
func Privileged() bool { return os.Getenv(UnprivilegedVariable) == "" }

// NewNetwork makes the namespaces of n servers, which end with the test. It fails the test where the
// system does not permit that.
func NewNetwork(t testing.TB, n int, seed uint64) *network.Network {
	t.Helper()
	w, err := network.New(n, seed)
	if err != nil {
		t.Fatalf("%v; where that cannot be had, set %s=1", err, UnprivilegedVariable)
	}
	t.Cleanup(w.Close)
	return w
}
