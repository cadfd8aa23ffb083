//go:build unix

package client

import (
	"errors"
	"syscall"
)

const canTryWrite = true

// tryWrite writes as much as a non-blocking socket has room for, perhaps nothing.
func tryWrite(fd uintptr, buf []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), buf)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		default:
			return max(n, 0), err
		}
	}
}
