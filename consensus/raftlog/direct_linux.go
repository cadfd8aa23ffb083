//go:build amd64 || arm64

package raftlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// File systems whose direct, durable writes in place are known to be what DirectFile promises: the
// f_type of statfs(2).
const (
	ext4Magic = 0xef53
	xfsMagic  = 0x58465342
)

// OpenDirect implements FS by the kernel's asynchronous I/O (io_submit(2)), for the sake of the
// goroutine that waits: it is parked like one that waits for a socket. A thread in a blocking call
// would take its processor along until the runtime's monitor notices, and would wake the monitor,
// which together cost a fifth of a busy server. Not io_uring, which container runtimes forbid.
func (osFS) OpenDirect(name string) (DirectFile, error) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_DIRECT, 0)
	if errors.Is(err, syscall.EINVAL) {
		return nil, errors.ErrUnsupported // by a file system without O_DIRECT
	}
	if err != nil {
		return nil, err
	}
	d, err := newDirectFile(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := d.try(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// directFile is a file with a context of the kernel's asynchronous I/O for one write at a time.
type directFile struct {
	file    *os.File
	fd      uint32
	context uintptr  // aio_context_t
	done    *os.File // eventfd(2), by which the runtime's poller learns that a write has ended
	doneFD  uint32
	poll    syscall.RawConn

	// Of the write that runs, and in one place, because the kernel is told where it is.
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
	opPwrite     = 1   // IOCB_CMD_PWRITE
	flagResultFD = 1   // IOCB_FLAG_RESFD
	rwDsync      = 0x2 // RWF_DSYNC
	rwNoWait     = 0x8 // RWF_NOWAIT
)

// newDirectFile owns f unless there is an error.
func newDirectFile(f *os.File) (*directFile, error) {
	if err := checkFileSystem(f); err != nil {
		return nil, err
	}
	dropCache(f)
	d := &directFile{file: f, fd: uint32(f.Fd())}
	d.submit, d.ended = &d.block, d.collect
	if _, _, errno := syscall.Syscall(syscall.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&d.context)), 0); errno != 0 {
		// Of a kernel without it (ENOSYS), a filter of system calls (EPERM), or because
		// fs.aio-max-nr is used up (EAGAIN).
		return nil, fmt.Errorf("io_setup: %w, %w", errno, errors.ErrUnsupported)
	}
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		d.destroy()
		return nil, os.NewSyscallError("eventfd", errno)
	}
	d.done, d.doneFD = os.NewFile(fd, "eventfd"), uint32(fd)
	poll, err := d.done.SyscallConn()
	if err != nil {
		d.destroy()
		return nil, errors.Join(err, d.done.Close())
	}
	d.poll = poll
	return d, nil
}

func checkFileSystem(f *os.File) error {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &st); err != nil {
		return os.NewSyscallError("fstatfs", err)
	}
	if st.Type != ext4Magic && st.Type != xfsMagic {
		return fmt.Errorf("file system of type %#x: %w", st.Type, errors.ErrUnsupported)
	}
	return nil
}

// dropCache lets the page cache forget the file: a direct write over a page that is there has to
// wait for it, and so cannot be done without blocking. It is only advice.
func dropCache(f *os.File) {
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0)
}

// try writes the first block again, as it is, to see whether all this works on this file.
func (d *directFile) try() error {
	b := alignedBuffer(blockSize)[:blockSize]
	if _, err := d.file.ReadAt(b, 0); err != nil {
		return err
	}
	err := d.WriteDurable(b, 0)
	for _, unable := range []error{syscall.EINVAL, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EPERM} {
		if errors.Is(err, unable) {
			return fmt.Errorf("%w, %w", err, errors.ErrUnsupported)
		}
	}
	return err
}

// WriteDurable implements DirectFile. What blocks before the write is on its way (the file system's
// journal, say, for the time of the change) is left to a second attempt, which may.
func (d *directFile) WriteDurable(b []byte, off int64) error {
	n, err := d.write(b, off, rwDsync|rwNoWait)
	if errors.Is(err, syscall.EAGAIN) {
		n, err = d.write(b, off, rwDsync)
	}
	if err == nil && n != len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = &os.PathError{Op: "direct write", Path: d.file.Name(), Err: err}
	}
	return err
}

func (d *directFile) write(b []byte, off int64, rwFlags int32) (int, error) {
	start := unsafe.SliceData(b)
	d.pinner.Pin(start)
	defer d.pinner.Unpin()
	d.block = ioControlBlock{
		opcode: opPwrite, rwFlags: rwFlags, flags: flagResultFD,
		fd: d.fd, resultFD: d.doneFD,
		buf: uint64(uintptr(unsafe.Pointer(start))), bytes: uint64(len(b)), offset: off,
	}
	if errno := d.start(rwFlags&rwNoWait == 0); errno != 0 {
		return 0, os.NewSyscallError("io_submit", errno)
	}
	if err := d.poll.Read(d.ended); err != nil {
		return 0, err
	}
	switch {
	case d.errno != 0:
		return 0, os.NewSyscallError("io_getevents", d.errno)
	case d.event.result < 0:
		return 0, syscall.Errno(-d.event.result)
	}
	return int(d.event.result), nil
}

// start gives the write to the kernel. Only a call that may block is announced to the runtime.
func (d *directFile) start(mayBlock bool) syscall.Errno {
	call := syscall.RawSyscall
	if mayBlock {
		call = syscall.Syscall
	}
	_, _, errno := call(syscall.SYS_IO_SUBMIT, d.context, 1, uintptr(unsafe.Pointer(&d.submit)))
	return errno
}

// collect asks whether the write has ended. The poller is edge-triggered, so nobody needs to read the
// eventfd: each end is an edge.
func (d *directFile) collect(uintptr) bool {
	var now syscall.Timespec
	n, _, errno := syscall.RawSyscall6(syscall.SYS_IO_GETEVENTS, d.context, 0, 1,
		uintptr(unsafe.Pointer(&d.event)), uintptr(unsafe.Pointer(&now)), 0)
	if errno == syscall.EINTR {
		return d.collect(0)
	}
	d.errno = errno
	return errno != 0 || n == 1
}

// Close waits for nothing: no write runs.
func (d *directFile) Close() error {
	d.destroy()
	return errors.Join(d.done.Close(), d.file.Close())
}

func (d *directFile) destroy() {
	_, _, _ = syscall.Syscall(syscall.SYS_IO_DESTROY, d.context, 0, 0)
}
