package raftlog

import (
	"errors"
	"fmt"
	"log/slog"
)

const (
	// DefaultSegmentSize is large against a batch, so that rolling is rare, and small against
	// a disk, so that deleting a prefix soon frees space.
	DefaultSegmentSize = 64 << 20
	// firstSegmentSize is the size of the segments of a small log; see Store.nextSize.
	firstSegmentSize = 1 << 20
	// MinSegmentSize leaves room for a header and a few records; for tests.
	MinSegmentSize = segmentHeaderSize + 1024
	// MaxSegmentSize keeps offsets in 32 bits and recovery, which reads a segment at a time
	// into memory, within reason.
	MaxSegmentSize = 1 << 30
	// DefaultCacheEntries covers the entries in flight to followers that keep up.
	DefaultCacheEntries = 4096
	// DefaultCacheBytes bounds the cache when entries are large. Few, of 1 MiB at most, are in
	// flight to followers that keep up; the others are in the page cache.
	DefaultCacheBytes = 4 << 20
)

// Options configure a Store. The zero value is usable.
type Options struct {
	// SegmentSize is the greatest length in bytes of new segment files; 0 means DefaultSegmentSize. An
	// entry must fit such a segment. The segments of a small log are shorter. Existing segments keep
	// their length.
	SegmentSize int64
	// CacheEntries bounds the entries held in memory; 0 means DefaultCacheEntries, -1 none.
	CacheEntries int
	// CacheBytes bounds the bytes held in memory; 0 means DefaultCacheBytes.
	CacheBytes int64
	// OnFatal is called once, with the store's lasting error, when a sync failed. The process
	// must end: how much reached the disk is unknown. It is called without locks held, must
	// not wait for the store and must not call Close. If it is nil, only the calls return the
	// error.
	OnFatal func(error)
	// Logger receives recovery reports and background failures; nil discards them.
	Logger *slog.Logger
	// FS is the file system; nil means OS().
	FS FS
	// NoDirect writes records through the page cache, one write and one fdatasync each time, even
	// if the file system can do better.
	NoDirect bool
	// MustExist refuses to create a new log. A server that has a term or a snapshot sets it,
	// because an empty directory does not show that a log has vanished.
	MustExist bool
}

func (o Options) withDefaults() (Options, error) {
	if o.SegmentSize == 0 {
		o.SegmentSize = DefaultSegmentSize
	}
	if o.SegmentSize < MinSegmentSize || o.SegmentSize > MaxSegmentSize {
		return o, fmt.Errorf("raftlog: segment size %d is not between %d and %d bytes",
			o.SegmentSize, int64(MinSegmentSize), int64(MaxSegmentSize))
	}
	o.SegmentSize = (o.SegmentSize + recordAlign - 1) &^ (recordAlign - 1)
	if o.CacheEntries == 0 {
		o.CacheEntries = DefaultCacheEntries
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = OS()
	}
	return o, nil
}

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("raftlog: the log is closed")

// ErrEntryTooLarge is wrapped by the error of an append whose entry does not fit a segment.
var ErrEntryTooLarge = errors.New("raftlog: entry does not fit a segment")

// errStopped ends work in the background when the store is closed.
var errStopped = errors.New("raftlog: closing")

// CorruptError reports that the files lack something that had been durable in them. A server that gets
// it at start must not run with this log: it has lost entries that it acknowledged, and could elect a
// leader that lacks committed entries.
type CorruptError struct {
	File   string // path of the damaged or missing file
	Offset int64  // bytes from the start of the file
	Index  uint64 // index of the first entry that is lost, 0 if unknown
	Reason string // what is wrong there
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("raftlog: corrupt log: %s: offset %d, index %d: %s; restore the file, or "+
		"remove this server from the ensemble, empty its data directory and add it as a new one",
		e.File, e.Offset, e.Index, e.Reason)
}
