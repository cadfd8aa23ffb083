package processors

import (
	"syscall"
	"time"
	"unsafe"
)

// clockProcess is CLOCK_PROCESS_CPUTIME_ID (clock_gettime(2)).
const clockProcess = 2

// cpuTime is the CPU time that all threads of the process have used. The call is not announced to
// Go's scheduler, which would wake its monitor thread for it.
func cpuTime() (used time.Duration, known bool) {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcess, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), errno == 0
}
