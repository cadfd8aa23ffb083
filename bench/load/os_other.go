//go:build !unix

package load

import (
	"fmt"
	"os"
	"time"
)

// kill ends a process.
func kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("killing process %d: %w", pid, err)
	}
	return p.Kill()
}

// resetWithin is not known here: a request that was not read counts as lost.
func resetWithin(uintptr, time.Duration) bool { return false }
