//go:build race

package rawconn

import (
	"errors"
	"syscall"
)

const available = true

// The functions of package syscall report to the race detector which memory the kernel reads and
// writes. In a build for that detector, their cost does not matter.

func read(fd uintptr, b []byte) (int, syscall.Errno)  { return call(syscall.Read, fd, b) }
func write(fd uintptr, b []byte) (int, syscall.Errno) { return call(syscall.Write, fd, b) }

func call(f func(int, []byte) (int, error), fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, err := f(int(fd), b)
		errno, failed := errors.AsType[syscall.Errno](err)
		if !failed {
			return n, 0
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
}
