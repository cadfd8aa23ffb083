package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zk-lite/zk-lite/bench/report"
)

// Site is where something is measured, and where the results go.
type Site struct {
	Root    string   // directory of zk-lite's module
	Dir     string   // a new directory on the disk to measure
	Machine []string // what there is to say about both
	Output  *report.Output

	systems map[string]System // those that were built or found, by name
}

// NewSite makes a directory below dir, or below the system's for temporary files
// if that is "". Close deletes it.
func NewSite(dir string, output *report.Output) (*Site, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	s := &Site{Root: root, Output: output, systems: map[string]System{}}
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

// Save writes the section of a suite that began at a time: its text, and all that it has measured as JSON. It may be
// called after every step, with end as the reason why not all was measured.
func (s *Site) Save(suite string, began time.Time, text string, all any, end error) error {
	return s.Output.Save(s.Output.File(s.Root, began), suite, text, all, end)
}

// System builds or finds the system of a name, at the first call.
func (s *Site) System(name string, builds []Build) (made System, err error) {
	if made = s.systems[name]; made != nil {
		return made, nil
	}
	switch i := slices.IndexFunc(builds, func(b Build) bool { return b.Name == name }); {
	case i >= 0 && builds[i].Path != "":
		made, err = NewBuild(name, builds[i].Path)
	case name == Ours:
		made, err = NewZKLite(s.Root, s.Dir)
	case name == Apache:
		made, err = NewZooKeeper()
	case name == "etcd":
		made, err = NewEtcd(s.Root, s.Dir)
	default: // what is made of our binary
		var ours System
		if ours, err = s.System(Ours, nil); err != nil {
			break
		}
		z, _ := ours.(*ZKLite)
		if name == "noop" {
			made = NewNoop(z)
		} else {
			made, err = z.Secure(name, s.Dir, name == AllTLS)
		}
	}
	if err != nil {
		return nil, err
	}
	s.systems[name] = made
	return made, nil
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
