package process

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// RunDelay is how long the process's threads that live now have waited for a processor, together (Linux's schedstat);
// 0 on other systems.
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
