package process

import (
	"syscall"
	"time"
	"unsafe"
)

// clockProcess is CLOCK_PROCESS_CPUTIME_ID (clock_gettime(2)).
const clockProcess = 2

// cpuTime is the CPU time that all threads of the process have used. The raw call does not
// wake the runtime's monitor thread.
func cpuTime() (used time.Duration, known bool) {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcess, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), errno == 0
}
