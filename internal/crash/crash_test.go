package crash_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/zk-lite/zk-lite/internal/crash"
)

// A multiRead panicked while it held a lock that the connection's deferred cleanup takes: the server no longer
// answered, and did not end. The process ends with the stack of the panic instead.
func TestOnPanic_WithALockThatCleanupTakes(t *testing.T) {
	if os.Getenv("CRASH_HERE") != "" {
		var mu sync.Mutex
		defer func() { mu.Lock(); defer mu.Unlock() }()
		defer crash.OnPanic()
		mu.Lock()
		panic("the invariant")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOnPanic_WithALock")
	cmd.Env = append(os.Environ(), "CRASH_HERE=yes")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != crash.ExitCode || !strings.Contains(string(out), "panic: the invariant") ||
		!strings.Contains(string(out), "TestOnPanic_WithALock") {
		t.Errorf("got %v and %q, want exit code %d and the panic's stack", err, out, crash.ExitCode)
	}
}

func TestOnPanic_LetsHTTPAbort(t *testing.T) {
	defer func() {
		if x := recover(); x != http.ErrAbortHandler {
			t.Errorf("got %v, want http.ErrAbortHandler", x)
		}
	}()
	defer crash.OnPanic(http.ErrAbortHandler)
	panic(http.ErrAbortHandler)
}
