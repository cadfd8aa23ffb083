//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package raftlog

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile takes a lock that the kernel releases when the process ends for any reason.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("locking %s (is another server using this directory?): %w",
			f.Name(), os.NewSyscallError("flock", err))
	}
	return nil
}
