// Package disk is a file system for the data directory of a real server process whose disk
// fails on request: syncs that fail, take long or lie, and power cuts after which everything
// that was not synced is lost. It is mounted (FUSE), so that the binary under test is the one
// that users get, and every file of a server, no matter which library writes it, is on that
// disk.
//
// # Model
//
// It is the model of consensus/raftlog/faultfs, with directories. Every file has the content
// that programs see and the content on the disk. A write changes the first; a sync, or
// sometimes the kernel's own writeback, copies pages to the second. After a failed sync the
// pages count as clean, as on Linux: a second sync succeeds and the disk still does not have
// them. Changes of names reach the disk in order, and a sync of any directory brings all of
// them there, as a journal does. A power cut keeps each unsynced page with even odds and a
// random number of the changes of names that were not synced; on a lying disk, whose cache is
// lost as a whole, it keeps neither.
//
// With NewExt4 the server's files are on an ext4 of the kernel's instead, whose block device is
// one file of such a disk. It loses power while processes run.
//
// It does not model owners, links, or times of files.
//
// # Concurrency
//
// All methods may be called from any goroutine, PowerCut only when no process has a file
// open. Every request of the kernel is answered on a goroutine of the library's (go-fuse),
// which asks the Fault without locks held.
package disk
