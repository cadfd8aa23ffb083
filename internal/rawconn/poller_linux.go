package rawconn

import (
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// mostEvents is how many connections are woken at a time.
const mostEvents = 128

// Poller waits for the bytes of many connections with one goroutine, which the first of them starts and Close ends. A
// goroutine that waits in Read for each of them takes more memory than all else that an idle connection needs. The zero
// value is ready.
type Poller struct {
	mu      sync.Mutex // protects the fields below
	file    *os.File   // of epoll; the runtime's own poller waits for it, so that no thread does. nil: not started
	fd      int
	closed  bool
	waiting []*conn // by their descriptors
}

func (p *Poller) startLocked() error {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	_ = syscall.SetNonblock(fd, true) // so that NewFile gives it to the runtime's poller
	p.fd, p.file = fd, os.NewFile(uintptr(fd), "epoll")
	raw, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	go p.run(raw)
	return nil
}

// Close ends the Poller. What waits is no longer woken, except by Wake and by the end of its connection.
func (p *Poller) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.file != nil {
		_ = p.file.Close()
	}
}

// arm has w woken by the next event of d.
func (p *Poller) arm(d *conn, fd int, w Waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	op := syscall.EPOLL_CTL_MOD
	if d.poller.Swap(p) == nil {
		op = syscall.EPOLL_CTL_ADD
	}
	if p.closed || d.closed.Load() { // after poller was set: Close does the same in the other order
		return false
	}
	if p.file == nil && p.startLocked() != nil {
		p.closed = true
		return false
	}
	// The kernel disarms it with the event, and forgets it when the descriptor is closed.
	e := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: int32(fd)}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, uintptr(p.fd), uintptr(op), uintptr(fd),
		uintptr(unsafe.Pointer(&e)), 0, 0); errno != 0 {
		return false
	}
	for len(p.waiting) <= fd {
		p.waiting = append(p.waiting, nil)
	}
	p.waiting[fd], d.waiter, d.fd = d, w, fd
	return true
}

// wake wakes what waits for d.
func (p *Poller) wake(d *conn) {
	p.mu.Lock()
	w := d.waiter
	if w != nil {
		d.waiter, p.waiting[d.fd] = nil, nil
	}
	p.mu.Unlock()
	if w != nil {
		w.Wake()
	}
}

// ready wakes what waits for a descriptor, which may have been closed and belong to another connection meanwhile.
func (p *Poller) ready(fd int) {
	p.mu.Lock()
	var w Waiter
	if d := p.waiting[fd]; d != nil {
		w, d.waiter, p.waiting[fd] = d.waiter, nil, nil
	}
	p.mu.Unlock()
	if w != nil {
		w.Ready()
	}
}

func (p *Poller) run(raw syscall.RawConn) {
	events := make([]syscall.EpollEvent, mostEvents)
	var n uintptr
	poll := func(fd uintptr) (done bool) {
		var errno syscall.Errno
		n, _, errno = syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, fd,
			uintptr(unsafe.Pointer(unsafe.SliceData(events))), mostEvents, 0, 0, 0)
		return errno == 0 && n > 0
	}
	for raw.Read(poll) == nil {
		for i := range events[:n] {
			p.ready(int(events[i].Fd))
		}
	}
}
