// Package faultfs is a file system in memory whose disk fails on request: writes that stop short,
// a full disk, syncs that fail, lie or take long, and power cuts that lose any part of what was
// not synced. It implements raftlog.FS for tests. It does not model permissions, links or nested
// directories beyond path prefixes.
//
// # Model
//
// Every file has the content that programs see and the content on the disk. A write changes the
// first; a sync, or now and then the kernel's own writeback, copies pages to the second. After a
// failed sync the pages count as clean, as on Linux: a second sync succeeds and the disk still
// does not have them. Changes of directories reach the disk in order. A power cut keeps each
// unsynced page with even odds, a random number of the directory changes that were not synced, and
// makes every open file and lock from before useless. A direct write is like
// a write and a sync of its pages in one, but a failed one leaves each page old or new.
//
// # Concurrency
//
// All methods may be called from any goroutine. Fault functions are called without locks held and
// may sleep or wait on channels; nothing here reads a clock or waits otherwise, so everything
// works in a testing/synctest bubble.
package faultfs
