package doctor

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// machine looks at the kernel's clock, and at its swap.
func (d *doctor) machine() {
	var t unix.Timex
	if state, err := unix.Adjtimex(&t); err == nil && (state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0) {
		d.warn("clock", "nothing keeps this machine's clock right (the kernel says that it is not synchronized)",
			"run chrony or systemd-timesyncd: the times of znodes, and TTLs, follow the leader's clock")
	}
	swappiness, err := number("/proc/sys/vm/swappiness")
	swaps, swapErr := os.ReadFile("/proc/swaps")
	const little = 10 // with more, Linux writes memory to the disk before it is short of it
	if err == nil && swapErr == nil && bytes.Count(swaps, []byte("\n")) > 1 && swappiness > little {
		d.warn("swap", fmt.Sprintf("there is swap, and vm.swappiness is %d: the tree may go to disk", swappiness),
			"sysctl vm.swappiness=1, or swapoff -a")
	}
}

func number(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(text)))
}

// unsafeFileSystem is the problem with a directory's file system; empty: none is known.
func unsafeFileSystem(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return ""
	}
	switch st.Type {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return "in memory (tmpfs): what was acknowledged is lost at the next boot"
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "on another machine: when the network fails, so does this server"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "in a container's own layer (overlayfs): it goes with the container"
	}
	return ""
}
