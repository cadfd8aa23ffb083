//go:build unix

package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Now returns the present usage.
func Now() Usage {
	u := Usage{Started: started}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil { // Linux's alone
		if fields := bytes.Fields(text); len(fields) > 1 {
			pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			u.Resident = pages * int64(os.Getpagesize())
		}
	}
	return u
}

// MaxDescriptors is how many descriptors the process may have open (RLIMIT_NOFILE).
func MaxDescriptors() (int, error) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, fmt.Errorf("asking for the limit of open files: %w", err)
	}
	return int(min(uint64(r.Cur), maxDescriptors)), nil //nolint:unconvert // int64 on FreeBSD
}

// OpenDescriptors counts the descriptors that the process has open.
func OpenDescriptors() (int, error) {
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
