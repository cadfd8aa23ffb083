package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc: sysconf(_SC_CLK_TCK), which is 100 per second on
// every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// ReadProcess reads how much a process has used since its start (proc(5)).
func ReadProcess(pid int) (Process, error) {
	p := Process{PID: pid}
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return p, fmt.Errorf("reading a process's CPU time: %w", err)
	}
	if p.CPU, err = parseStat(stat); err != nil {
		return p, fmt.Errorf("%sstat: %w", dir, err)
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return p, fmt.Errorf("reading a process's memory: %w", err)
	}
	p.RSS, p.PeakRSS = field(status, "VmRSS:")<<10, field(status, "VmHWM:")<<10
	return p, nil
}

// parseStat returns user and system time. The command's name, in brackets, may contain blanks
// and brackets, so fields count from the last one.
func parseStat(stat []byte) (time.Duration, error) {
	const utime, stime = 11, 12 // after the name
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) <= stime {
		return 0, fmt.Errorf("%q has too few fields", stat)
	}
	user, err := strconv.ParseInt(fields[utime], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("utime: %w", err)
	}
	system, err := strconv.ParseInt(fields[stime], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("stime: %w", err)
	}
	return time.Duration(user+system) * clockTick, nil
}

// field is the number after a name at the start of a line; 0 if there is none.
func field(text []byte, name string) int64 {
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		if parts := strings.Fields(rest); len(parts) > 0 {
			n, _ := strconv.ParseInt(parts[0], 10, 64)
			return n
		}
	}
	return 0
}

// usage is how much the servers and this process had used at one moment.
type usage struct {
	servers []Process
	self    time.Duration
}

// readUsage notes a process that has ended, which a killed leader has.
func readUsage(pids []int) usage {
	var u usage
	for _, pid := range pids {
		p, err := ReadProcess(pid)
		p.Ended = err != nil
		u.servers = append(u.servers, p)
	}
	if p, err := ReadProcess(os.Getpid()); err == nil {
		u.self = p.CPU
	}
	return u
}

// since is the usage since an earlier moment.
func (u usage) since(earlier usage) usage {
	d := usage{self: u.self - earlier.self}
	for i, p := range u.servers {
		if before := earlier.servers[i]; !p.Ended {
			p.CPU -= before.CPU
		}
		d.servers = append(d.servers, p)
	}
	return d
}
