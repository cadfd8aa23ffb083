//go:build unix

package doctor

import (
	"errors"
	"os"
	"syscall"
)

// sameDisk reports whether two files are on the same file system.
func sameDisk(a, b string) (bool, error) {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if err := errors.Join(errA, errB); err != nil {
		return false, err
	}
	return x.Sys().(*syscall.Stat_t).Dev == y.Sys().(*syscall.Stat_t).Dev, nil
}
