//go:build amd64 || arm64

package raftlog

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// aio is a context of the kernel's asynchronous I/O (io_submit(2)), for one write at a time to one
// file. The goroutine that waits is parked like one that waits for a socket. A thread in a blocking call would keep
// its processor until the runtime's monitor thread takes it away, and would wake that thread (docs/performance.md).
type aio struct {
	name    string
	fd      uint32
	context uintptr  // aio_context_t
	done    *os.File // eventfd(2), by which the runtime's poller learns that a write has ended
	doneFD  uint32
	poll    syscall.RawConn

	// Of the write that runs; the kernel knows their place in memory.
	block  ioControlBlock
	submit *ioControlBlock
	pinner runtime.Pinner
	ended  func(uintptr) bool // is collect
	event  ioEvent
	errno  syscall.Errno
}

// ioControlBlock is struct iocb of linux/aio_abi.h, little-endian.
type ioControlBlock struct {
	_        uint64 // data, given back with the event
	_        uint32 // key, the kernel's
	rwFlags  int32
	opcode   uint16
	_        int16 // priority
	fd       uint32
	buf      uint64
	bytes    uint64
	offset   int64
	_        uint64 // reserved
	flags    uint32
	resultFD uint32
}

// ioEvent is struct io_event.
type ioEvent struct {
	_      uint64 // data
	_      uint64 // the control block's address
	result int64  // bytes written, or an error's number, negative
	_      int64
}

const (
	opPwrite     = 1 // IOCB_CMD_PWRITE
	flagResultFD = 1 // IOCB_FLAG_RESFD
)

// newAIO fails where the kernel has none of it (ENOSYS), a filter of system calls forbids it (EPERM)
// or fs.aio-max-nr is used up (EAGAIN).
func newAIO(f *os.File) (*aio, error) {
	a := &aio{name: f.Name(), fd: uint32(f.Fd())}
	a.submit, a.ended = &a.block, a.collect
	_, _, errno := syscall.Syscall(syscall.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&a.context)), 0)
	if errno != 0 {
		return nil, os.NewSyscallError("io_setup", errno)
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		a.destroy()
		return nil, os.NewSyscallError("eventfd", err)
	}
	a.done, a.doneFD = os.NewFile(uintptr(fd), "eventfd"), uint32(fd)
	if a.poll, err = a.done.SyscallConn(); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// write writes b to off. The error is EAGAIN if it would block.
func (a *aio) write(b []byte, off int64) error {
	start := unsafe.SliceData(b)
	a.pinner.Pin(start)
	defer a.pinner.Unpin()
	a.block = ioControlBlock{
		opcode: opPwrite, rwFlags: unix.RWF_DSYNC | unix.RWF_NOWAIT, flags: flagResultFD, fd: a.fd, resultFD: a.doneFD,
		buf: uint64(uintptr(unsafe.Pointer(start))), bytes: uint64(len(b)), offset: off,
	}
	a.errno = 0
	// It returns at once, so the runtime need not know.
	_, _, errno := syscall.RawSyscall(syscall.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&a.submit)))
	if errno != 0 {
		return os.NewSyscallError("io_submit", errno)
	}
	if err := a.poll.Read(a.ended); err != nil {
		return err
	}
	if a.errno != 0 {
		return os.NewSyscallError("io_getevents", a.errno)
	}
	switch n := a.event.result; {
	case n < 0:
		return &os.PathError{Op: "direct write", Path: a.name, Err: syscall.Errno(-n)}
	case n < int64(len(b)):
		return unix.EAGAIN // for the rest
	}
	return nil
}

// collect asks whether the write has ended. The poller is edge-triggered, so that the eventfd need not be
// read: each end is an edge.
func (a *aio) collect(uintptr) bool {
	var now syscall.Timespec
	n, _, errno := syscall.RawSyscall6(syscall.SYS_IO_GETEVENTS, a.context, 0, 1,
		uintptr(unsafe.Pointer(&a.event)), uintptr(unsafe.Pointer(&now)), 0)
	if errors.Is(errno, syscall.EINTR) {
		return a.collect(0)
	}
	a.errno = errno
	return errno != 0 || n == 1
}

// close takes the kernel some 30 ms. No write may run.
func (a *aio) close() {
	a.destroy()
	_ = a.done.Close()
}

func (a *aio) destroy() {
	_, _, _ = syscall.Syscall(syscall.SYS_IO_DESTROY, a.context, 0, 0)
}
