package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Site is where something is measured.
type Site struct {
	Root    string   // directory of zk-lite's module
	Dir     string   // a new directory on the disk to measure
	Machine []string // what there is to say about both
}

// NewSite makes a directory below dir, or below the system's for temporary files
// if that is "". Close deletes it.
func NewSite(dir string) (*Site, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	s := &Site{Root: root}
	if s.Dir, err = os.MkdirTemp(dir, "zk-lite-bench-"); err != nil {
		return nil, fmt.Errorf("making a directory for the data: %w", err)
	}
	// Processes are started in directories of their own.
	if s.Dir, err = filepath.Abs(s.Dir); err != nil {
		return nil, fmt.Errorf("making a directory for the data: %w", err)
	}
	if s.Machine, err = machine(s.Dir); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close deletes the directory.
func (s *Site) Close() {
	if err := os.RemoveAll(s.Dir); err != nil {
		fmt.Fprintln(os.Stderr, "deleting the data:", err)
	}
}

// moduleRoot asks the go command, also from a module that requires this one.
func moduleRoot() (string, error) {
	const path = "github.com/zk-lite/zk-lite"
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return "", fmt.Errorf("finding the module %s, inside which this must run: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}
