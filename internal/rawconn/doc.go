// Package rawconn reads and writes TCP connections in system calls that Go's scheduler
// is not told about. It opens no connections, and knows no protocol.
//
// Package net announces every read and write to the scheduler, for it cannot know that
// a call on a socket in non-blocking mode returns at once. A process that was idle wakes its
// monitor thread with that, which then looks at every processor each 20 us, until it finds
// the process idle again. For a server that answers small requests on many connections,
// that thread took a fifth of the CPU (docs/performance.md). A call that is not
// announced keeps its processor, which is right for one that cannot wait: a socket that is not
// ready says so, and then it is package net's poller that waits.
//
// # Concurrency
//
// A connection may be used by several goroutines, as any net.Conn. No goroutine is started.
package rawconn
