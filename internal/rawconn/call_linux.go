//go:build !race

package rawconn

import (
	"syscall"
	"unsafe"
)

const available = true

func read(fd uintptr, b []byte) (int, syscall.Errno)  { return call(syscall.SYS_READ, fd, b) }
func write(fd uintptr, b []byte) (int, syscall.Errno) { return call(syscall.SYS_WRITE, fd, b) }

// call is a system call on a socket that is in non-blocking mode.
func call(trap, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		if errno == 0 {
			return int(n), 0
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
}
