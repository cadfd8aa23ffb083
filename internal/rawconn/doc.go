// Package rawconn reads and writes TCP connections with raw system calls, which Go's scheduler does not
// notice. It opens no connections and knows no protocol. The setting net.rawSystemCalls turns it off.
//
// Package net reports every read and write to the scheduler, because it cannot know that a call on a
// socket in non-blocking mode returns at once. In a process that was idle, such a report wakes the
// runtime's monitor thread, which then reads the state of every processor each 20 us until the process is
// idle again. In a server that answers small requests on many connections, that thread took a fifth of
// the CPU (docs/adr/0011).
//
// A raw call keeps its processor while the kernel copies. That is short for small messages: 5 to 20 us.
// It is longer for large ones, and other goroutines of that processor, the collector included, wait
// for it. A socket that is not ready returns EAGAIN, and then package net's poller waits.
//
// In a build for the race detector the calls are those of package syscall, which report to the detector
// which memory the kernel reads and writes. It is blind to that in a raw call.
//
// # Concurrency
//
// A connection may be used by several goroutines, as any net.Conn. Each has two locks, one per
// direction, held during a Read or a Write. The package starts no goroutine.
package rawconn
