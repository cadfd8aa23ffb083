//go:build unix

package load

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// kill ends a process with SIGKILL.
func kill(pid int) error {
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return fmt.Errorf("killing process %d: %w", pid, err)
	}
	return nil
}

// resetWithin waits until the kernel reports that a connection was reset.
func resetWithin(fd uintptr, limit time.Duration) bool {
	polled := []unix.PollFd{{Fd: int32(fd)}} // errors are reported in any case
	_, _ = unix.Poll(polled, int(limit.Milliseconds()))
	return polled[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
