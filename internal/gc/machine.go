package gc

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Memory is how many bytes this process may use: the machine's memory or its control group's limit, whichever
// is less. 0 means unknown, as on other systems than Linux.
func Memory() int64 {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			return "" // not Linux, or no such control group
		}
		return string(b)
	}
	total := parseMemInfo(read("/proc/meminfo"))
	for _, file := range limitFiles(read("/proc/self/cgroup")) {
		if limit := parseLimit(read(file)); limit > 0 && (total == 0 || limit < total) {
			total = limit
		}
	}
	return total
}

// limitFiles are the files with the limits of a process's control groups and of all groups above them, of
// versions 1 and 2, given its /proc/self/cgroup. A container sees its own group as the root.
func limitFiles(groups string) (files []string) {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) != 3 {
			continue
		}
		root, name := "/sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !slices.Contains(strings.Split(fields[1], ","), "memory") {
				continue
			}
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			files = append(files, path.Join(root, dir, name))
			if dir == "/" {
				break
			}
		}
	}
	return files
}

// parseMemInfo returns MemTotal of /proc/meminfo in bytes, 0 if it is not there.
func parseMemInfo(text string) int64 {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "MemTotal:" || fields[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || kib < 0 || kib > 1<<50 {
			return 0
		}
		return kib << 10
	}
	return 0
}

// parseLimit returns a control group's limit in bytes, 0 for "max" and what is
// no number.
func parseLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
