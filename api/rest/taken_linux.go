package rest

import (
	"net/http"
	"syscall"
	"time"
	"unsafe"
)

// Taken reports whether the client's machine has acknowledged everything that it
// was sent, or at least something lately. A write into a connection whose other end
// has vanished succeeds for many minutes; a stream must not keep a session alive
// that long.
func Taken(r *http.Request, lately time.Duration) bool {
	conn, ok := r.Context().Value(connKey{}).(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	ok = false
	err = raw.Control(func(fd uintptr) { ok = acknowledged(fd, lately) })
	return err == nil && ok
}

func acknowledged(fd uintptr, lately time.Duration) bool {
	queued := int32(0)
	// SIOCOUTQ (tcp(7)) has the number of TIOCOUTQ.
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ,
		uintptr(unsafe.Pointer(&queued)))
	if errno == 0 && queued == 0 {
		return true
	}
	var info syscall.TCPInfo
	size := uint32(unsafe.Sizeof(info))
	_, _, errno = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP,
		syscall.TCP_INFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	return errno == 0 && time.Duration(info.Last_ack_recv)*time.Millisecond < lately
}
