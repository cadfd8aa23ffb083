//go:build unix

package descriptors

import (
	"fmt"
	"os"
	"syscall"
)

// Limit is how many descriptors the process may have open (RLIMIT_NOFILE).
func Limit() (int, error) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, fmt.Errorf("asking for the limit of open files: %w", err)
	}
	return int(min(uint64(r.Cur), most)), nil //nolint:unconvert // int64 on FreeBSD
}

// Open counts the descriptors that the process has open.
func Open() (int, error) {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return 0, fmt.Errorf("counting open files: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("counting open files: %w", err)
	}
	return len(names) - 1, nil
}
