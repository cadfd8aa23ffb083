//go:build linux || darwin || freebsd

package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// FreeBytes is how much room there is for the server on the disk of a file or directory.
func FreeBytes(path string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("asking for the room at %s: %w", path, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // the types differ between systems
}

// SameDisk reports whether two files are on the same file system.
func SameDisk(a, b string) (bool, error) {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if err := errors.Join(errA, errB); err != nil {
		return false, err
	}
	return x.Sys().(*syscall.Stat_t).Dev == y.Sys().(*syscall.Stat_t).Dev, nil
}
