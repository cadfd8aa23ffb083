package fence

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// refuseRunning reports ErrRunning if a process has a file of the server's open, or is a server of ZooKeeper that
// cannot be looked into. A server that has not written since its newest snapshot has none open.
func (h Host) refuseRunning() error {
	files := h.files()
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("whether the server runs is not known, as /proc cannot be read (is this Linux?): %w", err)
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join("/proc", p.Name(), "fd")
		open, err := os.ReadDir(dir)
		if err != nil && isZooKeeper(p.Name()) && !os.IsNotExist(err) {
			return fmt.Errorf("%w, maybe: process %d is a ZooKeeper server, and this user may not see its files; "+
				"run this as root, or as that process's user", ErrRunning, pid)
		}
		for _, fd := range open {
			info, err := os.Stat(filepath.Join(dir, fd.Name()))
			if err != nil {
				continue // it was closed, or is no file
			}
			if path := files.pathOf(info); path != "" {
				return fmt.Errorf("%w: process %d has %s open; stop it, and keep it from starting, as systemctl "+
					"disable --now zookeeper does", ErrRunning, pid, path)
			}
		}
	}
	return nil
}

// isZooKeeper reports whether a process is a server of ZooKeeper, by its command line, which all users may read.
func isZooKeeper(pid string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	return err == nil && strings.Contains(string(b), "org.apache.zookeeper.server.")
}

// openFiles are a server's files, by their paths.
type openFiles map[string]fs.FileInfo

// pathOf is the path of a file, which a process in a container may know by another one; empty if it is none of them.
func (f openFiles) pathOf(info fs.FileInfo) string {
	for path, one := range f {
		if os.SameFile(one, info) {
			return path
		}
	}
	return ""
}

// files are those of the server, moved or not.
func (h Host) files() openFiles {
	all := openFiles{}
	for _, dir := range h.dirs() {
		for _, name := range []string{filesName, filesName + fenced} {
			names, err := os.ReadDir(filepath.Join(dir, name))
			if err != nil {
				continue // the other name is in use
			}
			for _, n := range names {
				path := filepath.Join(dir, name, n.Name())
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
					all[path] = info
				}
			}
		}
	}
	return all
}
