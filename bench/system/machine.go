package system

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zk-lite/zk-lite/bench/report"
)

// machine says in a few lines where the figures come from.
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

// fileSystem names the kind of a directory's file system and refuses memory:
// what is not on a disk cannot be synced to it.
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
