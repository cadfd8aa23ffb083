// Package raftlog is the store of Raft's log: a write-ahead log in preallocated segment files with
// a checksum on every record, verified on every read. It implements raft.LogStore and
// raft.MonotonicLogStore. It does not keep Raft's term and vote (raft.StableStore), does not take
// snapshots, and does not interpret entries.
//
// What it promises:
//
//   - An entry that was acknowledged as durable is returned as it was, or there is an error that
//     names file and offset. Damage found at start is a *CorruptError if it lies below the highest
//     position that any part of the files records as durable. Otherwise it is cut off as a torn write.
//   - StoreLogs costs one direct, durable write where the file system is known to do that well
//     (FS.OpenDirect; docs/adr/0013), else one write to the page cache and one fdatasync. Where the rule
//     of SetAsync allows it, StoreLogs returns before the batch is durable; then WaitDurable waits for
//     that, and Stalled returns for how long the disk has not answered. Raft is safe with this only if
//     the rule is right (consensus/transport, overlap.go).
//   - A failed sync is final: nothing is retried, all callers that wait get the error, and
//     Options.OnFatal is called. A failed write (a full disk) is the caller's error alone; the
//     log is as before and takes appends again when there is room.
//
// FORMAT.md describes the bytes on disk, and the effect of a power cut on them.
//
// # Concurrency
//
// All methods may be called from any goroutine; calls that change the log take turns. Raft calls
// StoreLogs and suffix deletions from its main goroutine, prefix deletions from its snapshot
// goroutine and GetLog from several. A prefix deletion makes appends wait for its write only.
//
// Two goroutines run from Open to Close. The syncer's makes asynchronous appends durable, with one sync for all
// that wait. The maintenance goroutine prepares the next segment, removes old ones and writes the
// high-water file; an append waits for it only if a segment fills up before the next is ready.
//
// Store is the writer and the reader of the log; syncer, maintenance, directory (the files) and contents (what is in
// memory) are its parts.
//
// There are five locks. Three are held during input and output, taken in this order: Store.writer by a change of the
// log, syncer.syncing by a sync, and directWriter.writing by a direct write. They are channels, so that a test in a
// synctest bubble can make the disk slow. contents.mu and directWriter.mu protect memory only and are taken last.
// contents.mu is never held during input or output; directWriter.mu is held while the start of a block is read from
// the file, which happens only at the first write after Open or after an append was taken back.
//
// Order: entries are visible to GetLog and LastIndex once written, which is before they are
// durable. Durability advances in log order. OnFatal is called on the goroutine that had the
// failure.
package raftlog
