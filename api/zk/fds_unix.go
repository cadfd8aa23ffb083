//go:build unix

package zk

import (
	"fmt"
	"os"
	"syscall"
)

// fileDescriptors counts the process's open files and says how many there may
// be.
func fileDescriptors() (open int, limit uint64, err error) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, 0, fmt.Errorf("asking for the limit of open files: %w", err)
	}
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return 0, 0, fmt.Errorf("counting open files: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, 0, fmt.Errorf("counting open files: %w", err)
	}
	return len(names) - 1, uint64(r.Cur), nil //nolint:unconvert // int64 on FreeBSD
}
