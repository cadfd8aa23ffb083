// Package process measures what this process uses and may use of the machine: processors, memory, descriptors and
// room on disks. It sets Go's garbage collector and the number of processors accordingly, if the command line asks
// for it.
package process

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

var started = time.Now()

// Usage is how much the process uses, in the terms of Prometheus's client libraries.
type Usage struct {
	Started  time.Time     // when, about
	CPU      time.Duration // of all its threads, since the start
	Resident int64         // bytes of memory; 0: not known on this system
}

// RunDelay is how long the process's present threads have waited for a processor, together (Linux's schedstat); 0
// on other systems.
func RunDelay() (sum time.Duration) {
	const tasks = "/proc/self/task"
	dir, err := os.Open(tasks)
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		text, _ := os.ReadFile(tasks + "/" + name + "/schedstat")
		if fields := bytes.Fields(text); len(fields) > 1 { // time on a processor, time waiting for one
			nanos, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			sum += time.Duration(nanos)
		}
	}
	return sum
}
