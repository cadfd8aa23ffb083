//go:build unix

package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Now returns what the process uses now.
func Now() Usage {
	u := Usage{Started: started}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil { // Linux's alone
		if fields := bytes.Fields(text); len(fields) > 1 {
			pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			u.Resident = pages * int64(os.Getpagesize())
		}
	}
	return u
}
