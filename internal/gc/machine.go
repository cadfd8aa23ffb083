package gc

import (
	"os"
	"strconv"
	"strings"
)

// machineMemory is how many bytes this process may use: the machine's memory
// or its control group's limit, whichever is less. 0 means unknown, as on other
// systems than Linux.
func machineMemory() int64 {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			return "" // not Linux, or no such control group
		}
		return string(b)
	}
	total := parseMemInfo(read("/proc/meminfo"))
	for _, path := range []string{
		"/sys/fs/cgroup/memory.max",                   // version 2, as containers see it
		"/sys/fs/cgroup/memory/memory.limit_in_bytes", // version 1
	} {
		if limit := parseLimit(read(path)); limit > 0 && (total == 0 || limit < total) {
			total = limit
		}
	}
	return total
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
