//go:build !linux

package rawconn

import "syscall"

const available = false

func read(uintptr, []byte) (int, syscall.Errno)  { return 0, syscall.ENOSYS }
func write(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

// Poller is of no use on this system: nothing can wait there.
type Poller struct{}

// Close does nothing.
func (*Poller) Close() {}

func (*Poller) arm(*conn, int, Waiter) bool { return false }

func (*Poller) wake(*conn) {}
