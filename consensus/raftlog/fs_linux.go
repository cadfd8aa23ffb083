package raftlog

import (
	"errors"
	"os"
	"syscall"
)

// datasync leaves out the time stamps, which saves a commit of the file system's
// journal.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
