package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/report"
)

// Site is where something is measured, and where the results go.
type Site struct {
	Root    string   // directory of zk-lite's module
	Dir     string   // a new directory on the disk to measure
	Machine []string // lines about both
	Output  *report.Output
	// ZooKeeper is its version, from Maven Central; "": Debian's package.
	ZooKeeper string

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
		made, err = NewZooKeeper(s.ZooKeeper)
	case name == "etcd":
		made, err = NewEtcd(s.Root, s.Dir)
	default: // names of our own binary
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

// Head is printed above every table: without it no figure can be judged.
type Head struct {
	Began    time.Time
	How      string   // rounds and times, without a full stop
	End      error    // why not all was measured; nil if it was
	Versions []string // of the measured systems, and other facts that all rows share
}

// Head is the text of h with the description of the machine, as Markdown. It ends with an empty
// line.
func (s *Site) Head(h *Head) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured on %s in %v: %s.\n\n", h.Began.UTC().Format("2006-01-02"),
		time.Since(h.Began).Round(time.Second), h.How)
	if h.End != nil {
		fmt.Fprintf(&b, "**Not complete** (%v).\n\n", h.End)
	}
	for _, list := range [][]string{s.Machine, h.Versions} {
		for _, line := range list {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// machine describes in a few lines where the figures come from.
func machine(dir string) ([]string, error) {
	var host syscall.Sysinfo_t
	if err := syscall.Sysinfo(&host); err != nil {
		return nil, fmt.Errorf("asking for the memory: %w", err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil, fmt.Errorf("asking for the kernel: %w", err)
	}
	fs, err := fileSystem(dir)
	if err != nil {
		return nil, err
	}
	sync, err := syncTime(dir)
	if err != nil {
		return nil, err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil, fmt.Errorf("asking how busy the machine is: %w", err)
	}
	return []string{
		fmt.Sprintf("%d x %s, %s of memory", runtime.NumCPU(), processor(),
			report.Bytes(int64(host.Totalram)*int64(host.Unit))),
		"Linux " + strings.TrimSpace(string(kernel)) + ", " + runtime.Version(),
		fmt.Sprintf("data of all on one %s; a write of 4 KiB with fdatasync takes %s (median of %d)",
			fs, report.Time(sync), syncProbes),
		"load average before (1, 5, 15 minutes): " + strings.Join(strings.Fields(string(load))[:3], ", "),
	}, nil
}

// processor is the model's name.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// fileSystem names the kind of a directory's file system and refuses memory: there is no disk
// to sync to.
func fileSystem(dir string) (string, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "", fmt.Errorf("looking at %s: %w", dir, err)
	}
	// The numbers of statfs(2).
	names := map[int64]string{0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs",
		0x2FC12FC1: "zfs", 0x794C7630: "overlayfs", 0x01021994: "tmpfs"}
	name, ok := names[s.Type]
	if !ok {
		name = fmt.Sprintf("file system %#x", s.Type)
	}
	if name == "tmpfs" {
		return "", fmt.Errorf("%s is memory (tmpfs); name a directory on a disk with -dir", dir)
	}
	return name, nil
}

const syncProbes = 200

// syncTime is the median of small synced writes.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return 0, fmt.Errorf("probing the disk: %w", err)
	}
	defer func() {
		f.Close()
		_ = os.Remove(f.Name()) // the directory goes with it at the end
	}()
	all := make([]time.Duration, 0, syncProbes)
	for range syncProbes {
		start := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, fmt.Errorf("probing the disk: %w", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, fmt.Errorf("probing the disk: %w", err)
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}
