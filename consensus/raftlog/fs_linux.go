package raftlog

import (
	"errors"
	"os"
	"syscall"
)

// datasync leaves out the time stamps, which spares the file system's journal a commit.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
