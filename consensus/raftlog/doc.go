// Package raftlog is the store of Raft's log: a write-ahead log in preallocated segment files with
// a checksum on every record, verified on every read. It implements raft.LogStore and
// raft.MonotonicLogStore. It does not keep Raft's term and vote (raft.StableStore), does not take
// snapshots, and does not interpret entries.
//
// What it promises:
//
//   - An entry that was acknowledged as durable is given back as it was, or there is an error that
//     names file and offset. Damage found at start is a *CorruptError if it lies below what any
//     part of the files says was durable, and is cut off as a torn write otherwise.
//   - StoreLogs costs one direct, durable write where the file system is known to do that well
//     (FS.OpenDirect; docs/adr/0013), else one write to the page cache and one fdatasync. With the
//     predicate of SetAsync it returns before the disk is asked for anything, or after the first of
//     the two, and WaitDurable and Stalled tell about the rest. Raft is only safe with that
//     under the rules that the predicate's owner must keep: responses wait for WaitDurable,
//     batches of a single voter or with a configuration are synchronous, and so on.
//   - A failed sync is final: nothing is retried, everybody who waits gets the error, and
//     Options.OnFatal is called. A failed write (a full disk) is the caller's error alone; the
//     log is as before and takes appends again when there is room.
//
// The bytes on disk and what happens to them in a power cut are in FORMAT.md.
//
// # Concurrency
//
// All methods may be called from any goroutine; calls that change the log take turns. Raft calls
// StoreLogs and suffix deletions from its main goroutine, prefix deletions from its snapshot
// goroutine and GetLog from several. A prefix deletion makes appends wait for its write only.
//
// Two goroutines run from Open to Close. The syncer makes asynchronous appends durable, all that
// wait with one sync. The keeper prepares the next segment, removes old ones and writes the
// high-water file; an append waits for it only if a segment fills up before the next is ready.
//
// Two locks are held during input and output: writer (who changes the log) and syncing (who
// syncs), taken in this order. They are channels, so that a test in a synctest bubble can make the
// disk slow. Store.mu guards memory only, is taken last and is never held during input or output.
//
// Order: entries are visible to GetLog and LastIndex once written, which is before they are
// durable. Durability advances in log order. OnFatal is called on the goroutine that met the
// failure.
package raftlog
