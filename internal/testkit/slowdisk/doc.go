// Package slowdisk makes the disk syncs of a process slow, counts them, and makes them hang, without
// root and without the program's help. It is for Linux 5.19 and later, and knows nothing of the
// program.
//
// The process is started through this program itself, once more: its init installs a seccomp filter
// that reports the system calls which sync, hands the reports' descriptor back, and executes the
// requested program. Disk answers each report with "continue" when it is due, so that the kernel
// then does the sync itself. Filters are inherited by threads and children, and survive an exec, so
// Java and a command like "ip netns exec" work as well as a static binary.
//
// Delayed are fsync, fdatasync, sync_file_range, msync with MS_SYNC, and pwritev2 with RWF_DSYNC or
// RWF_SYNC. Refused are other ways to sync, which nothing here needs: opening with O_DSYNC or O_SYNC,
// io_setup, io_uring_setup. Syncs of several threads wait at the same time, as they do at a disk that
// is far away rather than busy. One thing differs from a slow disk: SIGKILL ends a process in the
// middle of a delay, where the kernel would finish the sync first.
//
// # Concurrency
//
// Methods of Disk are safe for concurrent use. Every start has a goroutine that takes reports, which
// ends with the last process that has the filter, and every sync under way has one, at most maxWaiting.
package slowdisk
