package slowdisk

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where struct seccomp_data has the number of a call, and its arguments (their low halves, as all
// machines that Go knows with seccomp and 64 bits here are little-endian).
const (
	numberOffset   = 0
	argumentOffset = 16
	argumentSize   = 8
)

// The actions of the filter.
const (
	report = unix.SECCOMP_RET_USER_NOTIF
	refuse = unix.SECCOMP_RET_ERRNO
)

// rule is what the filter does with a system call. If flags is not 0, one of them must be set in the
// argument.
type rule struct {
	call     uint32
	argument uint32
	flags    uint32
	action   uint32
}

// Calls without a rule are allowed. The second list also has the rules that Fill needs.
var (
	rules = []rule{
		{unix.SYS_FSYNC, 0, 0, report},
		{unix.SYS_FDATASYNC, 0, 0, report},
		{unix.SYS_SYNC_FILE_RANGE, 0, 0, report},
		{unix.SYS_MSYNC, 2, unix.MS_SYNC, report},
		{unix.SYS_PWRITEV2, 5, unix.RWF_DSYNC | unix.RWF_SYNC, report},
		{unix.SYS_OPENAT, 2, unix.O_DSYNC, refuse | uint32(unix.EINVAL)}, // a bit of O_SYNC, too
		{unix.SYS_IO_SETUP, 0, 0, refuse | uint32(unix.ENOSYS)},
		{unix.SYS_IO_URING_SETUP, 0, 0, refuse | uint32(unix.ENOSYS)},
	}
	withWrites = append([]rule{{unix.SYS_PWRITE64, 0, 0, report}, {unix.SYS_FALLOCATE, 0, 0, report}}, rules...)
)

// program is the filter as the kernel runs it.
func program(rules []rule) (p []unix.SockFilter) {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	act := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	for _, r := range rules {
		// Each rule begins by loading the number, since the one before may have loaded an argument.
		p = append(p, load(numberOffset))
		equal := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: r.call, Jf: 1}
		if r.flags == 0 {
			p = append(p, equal, act(r.action))
			continue
		}
		equal.Jf = 3
		p = append(p, equal, load(argumentOffset+argumentSize*r.argument),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: r.flags, Jf: 1}, act(r.action))
	}
	return append(p, act(unix.SECCOMP_RET_ALLOW))
}

// install gives this thread the filter and returns the descriptor of its reports.
func install(rules []rule) (listener int, err error) {
	// Without it only root may install filters.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("giving up new privileges: %w", err)
	}
	p := program(rules)
	filter := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	// With the second flag a call that was reported is not begun again after a signal, only killed.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, code := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&filter)))
	if code != 0 {
		return 0, fmt.Errorf("installing a seccomp filter that reports syncs (Linux 5.19 and later): %w", code)
	}
	return int(fd), nil
}

// fills reports whether a call takes room on the disk; else it is a sync.
func (n *notification) fills() bool {
	return n.call == unix.SYS_PWRITE64 || n.call == unix.SYS_FALLOCATE
}

// notification is struct seccomp_notif, and answer is struct seccomp_notif_resp.
type (
	notification struct {
		id    uint64
		pid   uint32
		flags uint32
		call  uint32
		_     [60]byte
	}
	answer struct {
		id    uint64
		value int64
		code  int32
		flags uint32
	}
)

// receive waits for the next report. It is false when no process is left that could send one.
func receive(listener int) (n *notification, ok bool) {
	for {
		polled := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(polled, -1); err == unix.EINTR {
			continue
		} else if err != nil || polled[0].Revents&unix.POLLIN == 0 {
			return nil, false
		}
		n = &notification{}
		_, _, code := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV,
			uintptr(unsafe.Pointer(n)))
		if code == 0 {
			return n, true
		} // else a signal, or the process was killed before we looked
	}
}

// goOn makes the kernel carry out a reported call.
func (n *notification) goOn(listener int) {
	send(listener, &answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// fail ends a reported call with an error.
func (n *notification) fail(listener int, code unix.Errno) {
	send(listener, &answer{id: n.id, code: -int32(code)})
}

func send(listener int, a *answer) {
	// An error means that the process was killed meanwhile.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND,
		uintptr(unsafe.Pointer(a)))
}
